package import FCMModel

/// What a ``RegistrationCall`` brought.
package struct RegistrationResult: Sendable, Hashable {
    /// The answer.
    package enum Answer: Sendable, Hashable {
        /// What is known of the device.
        case found(RegistrationInfo)
        /// Why that is nothing.
        case rejected(Rejection)
    }

    /// The answer.
    package var answer: Answer
    /// What FCM itself said, bounded and free of tokens.
    package var upstreamCode: String

    /// A result.
    package init(_ answer: Answer, upstreamCode: String) {
        self.answer = answer
        self.upstreamCode = upstreamCode
    }
}
