package import NIOCore
import StrictJSON

/// Writes messages as bodies of v1's `messages:send` (TR-* of the translation page).
///
/// Nothing can be inexpressible: v1 knows every target, and every field has its place or is dropped where the page says
/// so.
package enum V1RequestEncoder {
    /// The body of the one call that a message to one recipient becomes.
    ///
    /// - Parameters:
    ///   - message: what to send.
    ///   - recipient: whom to.
    ///   - now: seconds since 1970, from which a time to live counts (TR-TTL).
    /// - Returns: the body.
    package static func encode(_ message: Message, to recipient: V1Recipient, now: Int) -> ByteBuffer {
        guard message.verbatim == nil else {
            return Self.template(for: message, now: now).body(for: recipient)
        }
        var writer = JSONWriter(reservingCapacity: 1_024)
        writer.beginObject()
        if message.dryRun { writer.member("validate_only", true) }
        writer.key("message")
        writer.beginObject()
        writer.member(recipient.key, recipient.text)
        V1MessageWriter(message, now: now).writeMembers(to: &writer)
        writer.endObject()
        writer.endObject()
        return writer.finish()
    }

    /// What the bodies of all calls share that one message becomes.
    ///
    /// - Parameters:
    ///   - message: what to send.
    ///   - now: seconds since 1970, read once for the whole fan-out, so that its calls are equal.
    /// - Returns: the bodies, but for the target.
    package static func template(for message: Message, now: Int) -> V1BodyTemplate {
        if let verbatim = message.verbatim {
            return V1BodyTemplate(members: verbatim.members, dryRun: message.dryRun)
        }
        var writer = JSONWriter(reservingCapacity: 1_024)
        writer.beginObject()
        V1MessageWriter(message, now: now).writeMembers(to: &writer)
        writer.endObject()
        return V1BodyTemplate(members: writer.finish(), dryRun: message.dryRun)
    }
}
