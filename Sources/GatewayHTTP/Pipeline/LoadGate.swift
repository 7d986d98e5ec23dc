import EventLoopHTTP
import FCMModel
package import GatewayCore
import Metrics
import Synchronization

/// Keeps a data listener from taking on more than it can serve, and refuses the rest cheaply.
///
/// What is refused is answered from texts made beforehand. Callers are asked to wait for one to three seconds, by turns,
/// so that they don't all come back at once.
package final class LoadGate: Sendable {
    private static let delays = [1, 2, 3]

    private let shedder: LoadShedder
    private let listCalls: Int
    private let subscriptionCalls: Int
    private let counters: [ShedReason: Counter]
    /// The answers by dialect and delay.
    private let answers: [[HTTPServerResponse]]
    private let turn = Atomic(0)

    /// A list of recipients by HTTP v1 has `listCalls` calls in flight at most, a list of devices to subscribe
    /// `subscriptionCalls`.
    package init(
        limits: LoadLimits,
        listCalls: Int = 1,
        subscriptionCalls: Int = 1,
        metrics: GatewayMetrics = GatewayMetrics()
    ) {
        self.shedder = LoadShedder(limits: limits)
        self.listCalls = listCalls
        self.subscriptionCalls = subscriptionCalls
        self.counters = metrics.counters(.shed, by: ShedReason.self)
        self.answers = Dialect.allCases.map { dialect in
            Self.delays.map { dialect.overloaded(retryAfter: $0) }
        }
    }

    package var inFlight: Int { self.shedder.inFlight }

    /// Why a request is not worth reading; `nil` for one that is.
    func refusal(lag: Duration, from principal: Principal? = nil) -> ShedReason? {
        self.shedder.refusal(of: principal?.profile.load, lag: lag)
    }

    /// Takes a request on, which then has to ``leave(_:_:)``, or tells why not.
    func enter(_ principal: Principal, _ load: RequestLoad = .call, lag: Duration) -> ShedReason? {
        var isUrgent = false
        if case .message(_, let urgent) = load { isUrgent = urgent }
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

    /// The calls that a request has in flight at a time.
    private func calls(of load: RequestLoad, _ principal: Principal) -> Int {
        switch (load, principal.profile.tenant.upstream) {
        case (.call, _), (_, .legacy): 1
        case (.message(let recipients, _), .v1): min(recipients, self.listCalls)
        case (.subscriptions(let devices), .v1): min(devices, self.subscriptionCalls)
        }
    }

    func answer(_ reason: ShedReason, in dialect: Dialect) -> HTTPServerResponse {
        self.counters[reason]?.increment()
        let turn = self.turn.wrappingAdd(1, ordering: .relaxed).newValue
        return self.answers[dialect.rawValue][Int(turn.magnitude % UInt(Self.delays.count))]
    }
}
