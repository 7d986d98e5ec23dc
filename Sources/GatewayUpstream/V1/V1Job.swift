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
    /// When waiting for answers ends.
    let deadline: ContinuousClock.Instant
    /// What each call of a list has to pass before it leaves.
    let gate: StartGate?

    init(
        account: V1Account,
        calls: V1Calls,
        kind: TargetKind,
        keepsAnswer: Bool,
        deadline: ContinuousClock.Instant,
        gate: StartGate?
    ) {
        self.account = account
        self.calls = calls
        self.kind = kind
        self.keepsAnswer = keepsAnswer
        self.deadline = deadline
        self.gate = gate
    }
}
