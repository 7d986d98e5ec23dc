package import FCMModel

/// What becomes of a request that carries an idempotency key.
package enum KeyedAnswer: Sendable {
    /// It was answered for the first time.
    ///
    /// - Parameters:
    ///   - SendOutcome: what became of the send.
    ///   - answer: the answer as it was rendered, which repeats get.
    case sent(SendOutcome, answer: [UInt8])
    /// It was answered before; the same answer once more.
    case replayed([UInt8])
    /// It was not looked at further: nothing was sent, spent or recorded.
    case refused(Refusal)
}
