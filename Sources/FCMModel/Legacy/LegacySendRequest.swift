/// A valid JSON request to the legacy `/fcm/send`.
package struct LegacySendRequest: Sendable, Hashable {
    /// Whom it addresses.
    ///
    /// A group's key in `to` looks like a token and stays one here.
    package var target: Target
    /// What it carries.
    package var message: Message
    /// The payload's size in bytes as the caller wrote it (L-SIZE).
    package var payloadBytes: Int
    /// Entries of `registration_ids` that fail without being sent, by index (L-EMPTYID, L-TOPICINLIST).
    package var localErrors: [Int: LegacyErrorName]

    /// A valid request.
    package init(target: Target, message: Message, payloadBytes: Int, localErrors: [Int: LegacyErrorName]) {
        self.target = target
        self.message = message
        self.payloadBytes = payloadBytes
        self.localErrors = localErrors
    }
}
