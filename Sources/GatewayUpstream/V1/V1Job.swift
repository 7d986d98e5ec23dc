import FCMModel

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
    /// When waiting for answers ends.
    let deadline: ContinuousClock.Instant

    init(account: V1Account, calls: V1Calls, kind: TargetKind, deadline: ContinuousClock.Instant) {
        self.account = account
        self.calls = calls
        self.kind = kind
        self.deadline = deadline
    }
}
