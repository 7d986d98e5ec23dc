package import CoreMetrics
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
    /// The answers by wording and delay.
    private let answers: [[HTTPServerResponse]]
    private let turn = Atomic(0)

    /// A gate.
    ///
    /// - Parameters:
    ///   - limits: what is taken on at once.
    ///   - listCalls: the calls that a list of recipients by HTTP v1 has in flight at most.
    ///   - subscriptionCalls: the same of a list of devices to subscribe.
    ///   - factory: makes the metrics.
    package init(limits: LoadLimits, listCalls: Int = 1, subscriptionCalls: Int = 1, factory: any MetricsFactory) {
        self.shedder = LoadShedder(limits: limits)
        self.listCalls = listCalls
        self.subscriptionCalls = subscriptionCalls
        var counters: [ShedReason: Counter] = [:]
        for reason in ShedReason.allCases {
            let counter = Counter(
                label: "fcmgw_shed_total",
                dimensions: [("reason", reason.rawValue)],
                factory: factory
            )
            counter.increment(by: 0)
            counters[reason] = counter
        }
        self.counters = counters
        self.answers = ShedWording.allCases.map { wording in
            Self.delays.map { Self.answer(in: wording, retryAfter: $0) }
        }
    }

    /// Calls in flight.
    package var inFlight: Int { self.shedder.inFlight }

    /// Why a request is not worth reading; `nil` for one that is.
    func refusal(of request: HTTPServerRequest, from principal: Principal? = nil) -> ShedReason? {
        self.shedder.refusal(of: principal?.profile.load, lag: request.lag)
    }

    /// Takes a request on.
    ///
    /// - Returns: `nil` when it is taken on and has to ``leave(_:)``, else why not.
    func enter(_ principal: Principal, isUrgent: Bool = false, lag: Duration) -> ShedReason? {
        self.shedder.enter(principal.profile.load, isUrgent: isUrgent, lag: lag)
    }

    /// Takes a message on.
    ///
    /// - Returns: `nil` when it is taken on and has to leave, else why not.
    func enter(_ command: SendCommand, lag: Duration) -> ShedReason? {
        self.shedder.enter(
            command.principal.profile.load,
            calls: self.calls(of: command),
            isUrgent: command.message.isUrgent,
            lag: lag
        )
    }

    /// A message that was taken on is sent, or will not be.
    func leave(_ command: SendCommand) {
        self.shedder.leave(command.principal.profile.load, calls: self.calls(of: command))
    }

    /// The calls that a message has in flight at a time.
    private func calls(of command: SendCommand) -> Int {
        switch command.principal.profile.tenant.upstream {
        case .legacy: 1
        case .v1: min(command.target.recipientCount, self.listCalls)
        }
    }

    /// Has a request that was taken on change so many devices' subscriptions.
    ///
    /// - Returns: `nil` when it may and has to ``endSubscriptions(of:by:)``, else why it is refused.
    func beginSubscriptions(of devices: Int, by principal: Principal, lag: Duration) -> Rejection? {
        let calls = self.furtherCalls(subscribing: devices, by: principal)
        guard calls > 0,
            let reason = self.shedder.enter(principal.profile.load, calls: calls, isUrgent: false, lag: lag)
        else { return nil }
        return Rejection(code: .overloaded, retryAfter: Self.delays[self.count(reason)])
    }

    /// The subscriptions are changed.
    func endSubscriptions(of devices: Int, by principal: Principal) {
        self.shedder.leave(principal.profile.load, calls: self.furtherCalls(subscribing: devices, by: principal))
    }

    /// The calls in flight at a time, but for the one that the request itself counts as.
    private func furtherCalls(subscribing devices: Int, by principal: Principal) -> Int {
        switch principal.profile.tenant.upstream {
        case .legacy: 0
        case .v1: min(devices, self.subscriptionCalls) - 1
        }
    }

    /// A request that was taken on is over.
    func leave(_ principal: Principal) {
        self.shedder.leave(principal.profile.load)
    }

    /// The answer to a request that is not taken on.
    func answer(_ reason: ShedReason, in wording: ShedWording) -> HTTPServerResponse {
        self.answers[wording.rawValue][self.count(reason)]
    }

    /// Counts a refusal, and says which of the delays is its.
    private func count(_ reason: ShedReason) -> Int {
        self.counters[reason]?.increment()
        let turn = self.turn.wrappingAdd(1, ordering: .relaxed).newValue
        return Int(turn.magnitude % UInt(Self.delays.count))
    }

    private static func answer(in wording: ShedWording, retryAfter: Int) -> HTTPServerResponse {
        let rejection = Rejection(code: .overloaded, retryAfter: retryAfter)
        var response =
            switch wording {
            case .rest: Refusal(rejection).response
            case .legacy: HTTPServerResponse(LegacyReply.overloaded(retryAfter: retryAfter))
            case .v1: HTTPServerResponse(V1Reply(refusing: rejection))
            case .instanceID: HTTPServerResponse(InstanceIDReply(Refusal(rejection)))
            case .groups: HTTPServerResponse(LegacyReply.groupsUnavailable(.overloaded, retryAfter: retryAfter))
            }
        response.isPaced = true
        return response
    }
}
