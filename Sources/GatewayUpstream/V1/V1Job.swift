import EventLoopHTTP
import FCMModel
import GatewayCore

/// One call of the gateway's as the calls that it becomes.
///
/// A class, since every one of them refers to it.
final class V1Job: Sendable {
    /// By what and where to they go.
    let account: V1Account
    /// The calls.
    let calls: V1Calls
    /// What they address together.
    let kind: TargetKind
    /// Whether the caller speaks v1 too and gets the upstream's own answer.
    let keepsAnswer: Bool
    /// The call of the gateway's.
    let call: UpstreamCall

    init(
        account: V1Account,
        calls: V1Calls,
        kind: TargetKind,
        keepsAnswer: Bool,
        call: UpstreamCall
    ) {
        self.account = account
        self.calls = calls
        self.kind = kind
        self.keepsAnswer = keepsAnswer
        self.call = call
    }

    /// When waiting for answers ends.
    var deadline: ContinuousClock.Instant { self.call.deadline }
    /// Where the calls go, and for whom.
    var subject: AttemptRecorder.Subject {
        AttemptRecorder.Subject(server: self.account.pool.origin, profile: self.call.profile, origin: self.call.origin)
    }
    /// What each call of a list has to pass before it leaves.
    var gate: StartGate? { self.call.gate }
}
