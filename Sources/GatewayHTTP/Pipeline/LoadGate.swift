import EventLoopHTTP
import FCMModel
package import GatewayCore
import Metrics
import Synchronization

/// Keeps a data listener from accepting more requests than it can serve, and refuses the rest cheaply.
///
/// Refusals use prepared answers. Their `Retry-After` is one, two and three seconds in turn, so that callers don't all
/// return at once.
package final class LoadGate: Sendable {
    private static let delays = [1, 2, 3]
    /// The number of listed recipients that cost as much as one send. Limits, pseudonyms and results of a thousand
    /// recipients took 1.6 to 4.7 ms, and one send 42 µs.
    private static let recipientsPerCall = 25

    private let shedder: LoadShedder
    private let listCalls: Int
    private let subscriptionCalls: Int
    private let counters: [LoadShedder.Reason: Counter]
    /// The answers, by dialect and delay.
    private let answers: [[HTTPServerResponse]]
    private let turn = Atomic(0)

    /// Creates a gate. A list of recipients by HTTP v1 has at most `listCalls` calls in flight, a list of devices to
    /// subscribe at most `subscriptionCalls`.
    package init(
        limits: LoadShedder.Limits,
        listCalls: Int = 1,
        subscriptionCalls: Int = 1,
        metrics: GatewayMetrics = GatewayMetrics()
    ) {
        self.shedder = LoadShedder(limits: limits)
        self.listCalls = listCalls
        self.subscriptionCalls = subscriptionCalls
        self.counters = metrics.counters(.shed, by: LoadShedder.Reason.self)
        self.answers = Dialect.allCases.map { dialect in
            Self.delays.map { dialect.overloaded(retryAfter: $0) }
        }
    }

    package var inFlight: Int { self.shedder.inFlight }

    /// Returns why a request should be refused unread; `nil` if it should be read.
    func refusal(lag: Duration, from principal: Principal? = nil) -> LoadShedder.Reason? {
        self.shedder.refusal(of: principal?.profile.load, lag: lag)
    }

    /// Admits a request, which then has to ``leave(_:_:)``; otherwise returns the reason.
    func enter(_ principal: Principal, _ load: RequestLoad = .call, lag: Duration) -> LoadShedder.Reason? {
        var isUrgent = false
        if case .message(_, _, let urgent) = load { isUrgent = urgent }
        return self.shedder.enter(
            principal.profile.load,
            calls: self.calls(of: load, principal),
            isUrgent: isUrgent,
            lag: lag
        )
    }

    func leave(_ principal: Principal, _ load: RequestLoad = .call) {
        self.shedder.leave(principal.profile.load, calls: self.calls(of: load, principal))
    }

    /// Returns a request's weight: its calls in flight at a time, or the work of its list if that is more.
    private func calls(of load: RequestLoad, _ principal: Principal) -> Int {
        switch (load, principal.profile.tenant.upstream) {
        case (.call, _): 1
        case (.message(let recipients, let calls, _), _): max(min(calls, self.listCalls), Self.work(of: recipients))
        case (.subscriptions(let devices), .legacy): Self.work(of: devices)
        case (.subscriptions(let devices), .v1): max(min(devices, self.subscriptionCalls), Self.work(of: devices))
        }
    }

    private static func work(of count: Int) -> Int {
        max(1, (count + self.recipientsPerCall - 1) / self.recipientsPerCall)
    }

    func answer(_ reason: LoadShedder.Reason, in dialect: Dialect) -> HTTPServerResponse {
        self.counters[reason]?.increment()
        let turn = self.turn.wrappingAdd(1, ordering: .relaxed).newValue
        return self.answers[dialect.rawValue][Int(turn.magnitude % UInt(Self.delays.count))]
    }
}
