extension LegacySendRequest {
    /// Whom something is sent to: the target without the entries that fail locally (TR-FANOUT); `nil` if none is left.
    package var sentTarget: Target? {
        guard !self.localErrors.isEmpty, case .tokens(let tokens) = self.target else { return self.target }
        let sent = tokens.indices.filter { self.localErrors[$0] == nil }.map { tokens[$0] }
        return sent.isEmpty ? nil : .tokens(sent)
    }
}
