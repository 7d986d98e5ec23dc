import StrictJSON

/// A valid request to the v1 facade's `messages:send`.
package struct V1SendRequest: Sendable {
    /// Whom it addresses.
    ///
    /// A group's key in `token` looks like a token and stays one here.
    package let target: Target
    /// What it carries, verbatim, for a v1 upstream.
    package let message: Message
    /// The payload's size in bytes (V-SIZE).
    package let payloadBytes: Int
    /// The `message` object, checked.
    private let content: JSONValue

    init(target: Target, message: Message, payloadBytes: Int, content: JSONValue) {
        self.target = target
        self.message = message
        self.payloadBytes = payloadBytes
        self.content = content
    }

    /// The request in the words of the legacy protocol, for a legacy upstream.
    ///
    /// - Parameter now: seconds since 1970, to which an `apns-expiration` is compared.
    /// - Returns: the same message, with nothing lost.
    /// - Throws: the first field that legacy can't carry.
    package func legacyRequest(now: Int) throws(Refusal) -> LegacySendRequest {
        switch self.target {
        case .installation, .installations:
            throw .notCarried("message.fid")
        case .condition(let condition) where !condition.fits(.legacy):
            throw .notCarried("message.condition")
        case .token, .tokens, .topic, .condition, .notificationKey:
            break
        }
        var translation = V1LegacyTranslation(now: now, dryRun: self.message.dryRun)
        let message = try translation.message(from: self.content)
        let payloadBytes = message.payloadBytes
        guard payloadBytes <= self.target.maxPayloadBytes else {
            throw .tooBig(payloadBytes, limit: self.target.maxPayloadBytes)
        }
        return LegacySendRequest(target: self.target, message: message, payloadBytes: payloadBytes, localErrors: [:])
    }
}
