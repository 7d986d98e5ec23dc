package import NIOCore
import StrictJSON

/// Writes a message as the JSON body of a legacy `/fcm/send`, in canonical form.
///
/// Leaves out absent members and flags that are not set. Writes every member that the protocol types as text as text.
package enum LegacyRequestEncoder {
    /// The reason that a message can't be sent by the legacy protocol.
    package enum Inexpressible: Error, Sendable, Hashable {
        case installationTarget
        case condition
        /// The message is in v1's own form and must be translated first.
        case passThrough
    }

    package static func encode(_ message: Message, to target: Target) throws(Inexpressible) -> ByteBuffer {
        guard message.passThrough == nil else { throw .passThrough }
        var writer = JSONWriter(reservingCapacity: 512)
        writer.beginObject()
        try Self.write(target, to: &writer)
        Self.writeOptions(of: message, to: &writer)
        if let notification = message.notification, !notification.isEmpty {
            Self.write(notification, to: &writer)
        }
        writer.data(of: message)
        writer.endObject()
        return writer.finish()
    }

    private static func write(_ target: Target, to writer: inout JSONWriter) throws(Inexpressible) {
        switch target {
        case .token(let token), .notificationKey(let token):
            writer.member("to", token)
        case .tokens(let tokens):
            writer.member("registration_ids", tokens)
        case .topic(let topic):
            writer.member("to", TopicName.legacyPrefix + topic.text)
        case .condition(let condition):
            guard condition.fits(.legacy) else { throw .condition }
            writer.member("condition", condition.canonical)
        case .installation, .installations, .deviceGroup:
            throw .installationTarget
        }
    }

    private static func writeOptions(of message: Message, to writer: inout JSONWriter) {
        if let collapseKey = message.collapseKey { writer.member("collapse_key", collapseKey) }
        if let priority = message.priority { writer.member("priority", priority.rawValue) }
        if message.contentAvailable { writer.member("content_available", true) }
        if message.mutableContent { writer.member("mutable_content", true) }
        if let timeToLive = message.timeToLive { writer.member("time_to_live", timeToLive) }
        if let package = message.restrictedPackageName { writer.member("restricted_package_name", package) }
        if message.dryRun { writer.member("dry_run", true) }
    }

    private static func write(_ notification: Notification, to writer: inout JSONWriter) {
        writer.beginObject("notification")
        for text in notification.texts {
            writer.key(text.key.rawValue)
            writer.string(text.value)
        }
        if let badge = notification.badge { writer.member("badge", String(badge)) }
        if let arguments = notification.titleLocArgs {
            writer.member("title_loc_args", Self.compactJSON(arguments))
        }
        if let arguments = notification.bodyLocArgs {
            writer.member("body_loc_args", Self.compactJSON(arguments))
        }
        writer.endObject()
    }

    /// A list of strings as JSON without blanks. Legacy FCM expects `*_loc_args` in this form.
    private static func compactJSON(_ strings: [String]) -> String {
        var writer = JSONWriter()
        writer.beginArray()
        for string in strings {
            writer.string(string)
        }
        writer.endArray()
        return String(buffer: writer.finish())
    }
}
