import EventLoopHTTP
package import GatewayCore
import Metrics
import Synchronization

/// What is measured of requests to one listener.
package final class HTTPMetrics: Sendable {
    private let durations: MetricFamily<Timer>
    private let acceptedSends: Timer
    private let rejections: [Rejection: Counter]
    private let closes: [HTTPServerCloseReason: Counter]
    private let authenticationMethod: String
    private let authentications: MetricFamily<Counter>
    private let acceptances: Counter
    private let active: Meter

    /// Metrics of a listener, `data` or `admin`.
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

    /// Notes that a request ended with an answer: by its route's template, `none` where there is none, and after the time
    /// from its last byte to the finished answer.
    func ended(route: String, method: String, status: Int, in duration: Duration) {
        self.active.decrement()
        if status == 200, route == SendMessage.template {
            self.acceptedSends.record(duration: duration)
            return
        }
        // A method that a route doesn't have is answered without a key, for every route and method there is.
        let route = status == 405 ? "none" : route
        self.durations[route, Self.label(of: method), Self.label(of: status)].record(duration: duration)
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

    /// A method as metrics and logs name it: `other` unless it is a common one.
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
    /// Why the server refused a request before routing; the raw value is a label's.
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
}

/// Bounds the histograms of requests to one listener, by route, method and status.
///
/// A histogram is 17 series, and the documented answers alone are hundreds of combinations. The first ones have histograms
/// of their own. What is new beyond that is measured by the class of its status (`4xx`), and in the end without its route.
private final class DurationRoom: Sendable {
    private struct Room {
        /// Of route, method and status.
        var exact: Int
        /// Of route, method and class of the status.
        var classes: Int
    }

    private struct State {
        var room: Room
        /// Of the room, what refused requests may take: anybody can bring these about, and they must leave room for the
        /// others.
        var refusalRoom: Room
        /// The classes that have a histogram.
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
            State(room: Room(exact: exact, classes: classes), refusalRoom: Room(exact: exact / 2, classes: classes / 2))
        )
    }

    func fold(_ labels: MetricLabels) -> MetricLabels {
        // Statuses below 200 and beyond 599 are none that a request ends with.
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
