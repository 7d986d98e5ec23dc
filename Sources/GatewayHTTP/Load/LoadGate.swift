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
    private let counters: [ShedReason: Counter]
    /// The answers by wording and delay.
    private let answers: [[HTTPServerResponse]]
    private let turn = Atomic(0)

    /// A gate.
    ///
    /// - Parameters:
    ///   - limits: what is taken on at once.
    ///   - factory: makes the metrics.
    package init(limits: LoadLimits, factory: any MetricsFactory) {
        self.shedder = LoadShedder(limits: limits)
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

    /// Requests in flight.
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
    /// - Returns: `nil` when it is taken on and its principal has to ``leave(_:)``, else why not.
    func enter(_ command: SendCommand, lag: Duration) -> ShedReason? {
        self.enter(command.principal, isUrgent: command.message.isUrgent, lag: lag)
    }

    /// A request that was taken on is over.
    func leave(_ principal: Principal) {
        self.shedder.leave(principal.profile.load)
    }

    /// The answer to a request that is not taken on.
    func answer(_ reason: ShedReason, in wording: ShedWording) -> HTTPServerResponse {
        self.counters[reason]?.increment()
        let turn = self.turn.wrappingAdd(1, ordering: .relaxed).newValue
        return self.answers[wording.rawValue][Int(turn.magnitude % UInt(Self.delays.count))]
    }

    private static func answer(in wording: ShedWording, retryAfter: Int) -> HTTPServerResponse {
        let rejection = Rejection(code: .overloaded, retryAfter: retryAfter)
        var response =
            switch wording {
            case .rest: Problem(rejection).response
            case .legacy: HTTPServerResponse(LegacyReply.overloaded(retryAfter: retryAfter))
            case .v1: HTTPServerResponse(V1Reply(refusing: rejection))
            case .instanceID: HTTPServerResponse(InstanceIDReply(InstanceIDRefusal(rejection)))
            case .groups: HTTPServerResponse(LegacyReply.groupsUnavailable(.overloaded, retryAfter: retryAfter))
            }
        response.isPaced = true
        return response
    }
}
