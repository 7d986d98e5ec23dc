import GatewayCore
import Metrics

/// What is measured of calls to one API of FCM's.
final class UpstreamMetrics: Sendable {
    /// The API; the raw value is the label.
    enum API: String, CaseIterable {
        case legacy
        case v1
        case v1Topics = "v1_topics"
        case instanceID = "iid"
        case deviceGroups = "device_groups"
    }

    private let api: API
    private let attempts: MetricFamily<Timer>
    private let answered: Timer
    private let inFlight: Meter

    init(_ api: API, _ metrics: GatewayMetrics) {
        self.api = api
        self.attempts = metrics.timers(.upstreamAttemptDuration)
        self.answered = self.attempts[api.rawValue, "answered"]
        self.inFlight = metrics.gauge(.upstreamInFlight, api.rawValue)
    }

    /// Notes that an attempt begins.
    func began() {
        self.inFlight.increment()
    }

    /// Notes that an attempt was answered.
    func answered(in duration: Duration) {
        self.inFlight.decrement()
        self.answered.record(duration: duration)
    }

    /// Notes that an attempt failed, by the name of what went wrong on the way.
    func failed(_ failure: String, in duration: Duration) {
        self.inFlight.decrement()
        self.attempts[self.api.rawValue, failure].record(duration: duration)
    }
}
