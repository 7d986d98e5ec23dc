import GatewayCore

extension AuditSinkLine {
    /// The checkpoint, where it is one.
    var checkpoint: SignedCheckpoint? {
        if case .checkpoint(let checkpoint) = self { checkpoint } else { nil }
    }
}
