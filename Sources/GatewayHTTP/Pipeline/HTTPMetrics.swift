package import CoreMetrics
import GatewayCore
import Metrics
import Synchronization

/// What is measured of requests to one listener.
package final class HTTPMetrics: Sendable {
    private let durations: Mutex<HTTPDurations>
    private let acceptedSends: Timer
    private let rejections: Mutex<MetricFamily<String, Counter>>
    private let authentications: Mutex<MetricFamily<String, Counter>>
    private let acceptances: Counter
    private let active: Meter

    /// Metrics made by a factory.
    ///
    /// - Parameters:
    ///   - factory: makes the metrics.
    ///   - listener: `data` or `admin`.
    package init(factory: any MetricsFactory, listener: String) {
        self.durations = Mutex(HTTPDurations(factory: factory, room: listener == "admin" ? .admin : .data))
        self.acceptedSends = self.durations.withLock { durations in
            durations.timer(of: HTTPDurations.Key(route: SendMessage.template, method: "POST", status: .exact(200)))
        }
        self.rejections = Mutex(
            MetricFamily { reason in
                Counter(label: "fcmgw_http_rejected_total", dimensions: [("reason", reason)], factory: factory)
            }
        )
        self.authentications = Mutex(
            MetricFamily { result in
                Counter(
                    label: "fcmgw_auth_total",
                    dimensions: [("method", listener == "admin" ? "admin_token" : "api_key"), ("result", result)],
                    factory: factory
                )
            }
        )
        self.acceptances = self.authentications.withLock { $0.member(of: "accepted") }
        self.active = Meter(
            label: "fcmgw_http_active_requests",
            dimensions: [("listener", listener)],
            factory: factory
        )
        self.active.set(0)
    }

    /// Notes that a request began.
    func began() {
        self.active.increment()
    }

    /// Notes that a request ended with an answer.
    ///
    /// - Parameters:
    ///   - route: the route's template, `none` where there is none; a bounded set.
    ///   - method: the method, `other` unless it is a common one.
    ///   - status: the answer's status.
    ///   - duration: from the last byte of the request to the finished answer.
    func ended(route: String, method: String, status: Int, in duration: Duration) {
        self.active.decrement()
        if status == 200, route == SendMessage.template {
            self.acceptedSends.record(duration: duration)
            return
        }
        // A method that a route doesn't have is answered without a key, for every route and method there is.
        let key = HTTPDurations.Key(
            route: status == 405 ? "none" : route,
            method: Self.label(of: method),
            status: .exact(status)
        )
        self.durations.withLock { $0.timer(of: key) }.record(duration: duration)
    }

    /// Counts a request that the server refused before routing.
    package func rejected(reason: String) {
        self.rejections.withLock { $0.member(of: reason) }.increment()
    }

    /// Counts an attempt to authenticate that succeeded.
    func authenticated() {
        self.acceptances.increment()
    }

    /// Counts an attempt to authenticate that was refused.
    func refused(result: String) {
        self.authentications.withLock { $0.member(of: result) }.increment()
    }

    /// A method as metrics and logs name it: `other` unless it is a common one.
    static func label(of method: String) -> String {
        Self.methods.contains(method) ? method : "other"
    }

    private static let methods: Set<String> = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"]
}
