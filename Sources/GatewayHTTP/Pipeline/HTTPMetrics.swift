import EventLoopHTTP
package import GatewayCore
import Metrics
import Synchronization

/// The metrics of requests to one listener.
package final class HTTPMetrics: Sendable {
    private let durations: MetricFamily<Timer>
    private let acceptedSends: Timer
    private let rejections: [Rejection: Counter]
    private let closes: [HTTPServerCloseReason: Counter]
    private let authenticationMethod: String
    private let authentications: MetricFamily<Counter>
    private let acceptances: Counter
    private let active: Meter

    /// Creates the metrics of a listener, `data` or `admin`.
    package init(_ metrics: GatewayMetrics, listener: String) {
        let isAdmin = listener == "admin"
        let room = DurationRoom(exact: isAdmin ? 16 : 36, classes: isAdmin ? 6 : 12)
        self.durations = metrics.timers(.httpRequestDuration) { room.fold($0) }
        self.acceptedSends = self.durations[SendMessage.template, "POST", "200"]
        self.rejections = metrics.counters(.httpRejected, by: Rejection.self)
        self.closes = metrics.counters(.httpRejected, by: HTTPServerCloseReason.self)
        self.authenticationMethod = isAdmin ? "admin_token" : "api_key"
        self.authentications = metrics.counters(.authentications)
        self.acceptances = self.authentications[self.authenticationMethod, "accepted"]
        self.active = metrics.gauge(.httpActiveRequests, listener)
        self.active.set(0)
    }

    func began() {
        self.active.increment()
    }

    /// Notes that a request was answered. `route` is its template, or `none`; the duration begins at the request's last
    /// byte and ends with the finished answer.
    func ended(route: String, method: String, status: Int, in duration: Duration) {
        self.active.decrement()
        if status == 200, route == SendMessage.template {
            self.acceptedSends.recordNanoseconds(duration.nanoseconds)
            return
        }
        // A wrong method is answered without a key; counted by route, it would let anybody create a series per route
        // and method.
        let route = status == 405 ? "none" : route
        self.durations[route, Self.label(of: method), Self.label(of: status)].recordNanoseconds(duration.nanoseconds)
    }

    /// Counts a request that the server refused before routing.
    func rejected(_ rejection: Rejection) {
        self.rejections[rejection]?.increment()
    }

    /// Counts a connection that the server ended without an answer.
    func closed(_ reason: HTTPServerCloseReason) {
        self.closes[reason]?.increment()
    }

    func authenticated() {
        self.acceptances.increment()
    }

    func refused(result: String) {
        self.authentications[self.authenticationMethod, result].increment()
    }

    /// A method's name in metrics and logs; `other` for an uncommon one.
    static func label(of method: String) -> String {
        switch method {
        case "POST", "GET", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS": method
        default: "other"
        }
    }

    private static func label(of status: Int) -> String {
        Self.statuses.indices.contains(status) ? Self.statuses[status] : "other"
    }

    private static let statuses = (0..<600).map(String.init)
}

extension HTTPMetrics {
    /// The reason why the server refused a request before routing; the raw value is the label.
    enum Rejection: String, CaseIterable {
        case badRequest = "bad_request"
        case uriTooLong = "uri_too_long"
        case headerTooLarge = "header_too_large"
        case bodyTooLarge = "body_too_large"
        case headTimeout = "head_timeout"
        case bodyTimeout = "body_timeout"
        case transferEncoding = "transfer_encoding"
        case httpVersion = "http_version"
        case expectation
        case tooManyConnections = "too_many_connections"
        case tooManyBufferedBytes = "too_many_buffered_bytes"
    }

    /// Bounds the number of a listener's request histograms, which differ by route, method and status.
    ///
    /// A histogram has 17 series, and the documented answers alone have hundreds of combinations. The first
    /// combinations get their own histograms. Later ones share one per class of status (`4xx`); when those run out,
    /// they also lose their route.
    private final class DurationRoom: Sendable {
        private struct Room {
            /// Combinations of route, method and status.
            var exact: Int
            /// Combinations of route, method and class of status.
            var classes: Int
        }

        private struct State {
            var room: Room
            /// The part of the room that refused requests may use: anybody can cause those, and they must leave room
            /// for others.
            var refusalRoom: Room
            /// The combinations by class that have a histogram.
            var classes: Set<MetricLabels> = []

            mutating func takeRoom(_ part: WritableKeyPath<Room, Int>, isRefusal: Bool) -> Bool {
                guard self.room[keyPath: part] > 0 else { return false }
                if isRefusal {
                    guard self.refusalRoom[keyPath: part] > 0 else { return false }
                    self.refusalRoom[keyPath: part] -= 1
                }
                self.room[keyPath: part] -= 1
                return true
            }
        }

        private let state: Mutex<State>

        init(exact: Int, classes: Int) {
            self.state = Mutex(
                State(
                    room: Room(exact: exact, classes: classes),
                    refusalRoom: Room(exact: exact / 2, classes: classes / 2)
                )
            )
        }

        func fold(_ labels: MetricLabels) -> MetricLabels {
            // No request ends with a status below 200 or above 599.
            let digit = min(max(labels.third.first?.wholeNumberValue ?? 5, 2), 5)
            var folded = labels
            return self.state.withLock { state in
                if state.takeRoom(\.exact, isRefusal: digit == 4) { return labels }
                folded.third = "\(digit)xx"
                if state.classes.contains(folded) { return folded }
                if state.takeRoom(\.classes, isRefusal: digit == 4) {
                    state.classes.insert(folded)
                    return folded
                }
                (folded.first, folded.second) = ("other", "other")
                return folded
            }
        }
    }
}
