package import NIOCore
import StrictJSON

/// Writes requests to `/fcm/notification` (T10).
package enum GroupRequestEncoder {
    /// Where device groups are managed.
    package static let path = "/fcm/notification"

    /// The path with the query of a request.
    package static func path(of request: GroupRequest) -> String {
        switch request {
        case .change: Self.path
        case .lookUp(let name): "\(Self.path)?notification_key_name=\(PercentEncoding.encoded(name))"
        }
    }

    /// The body of a request; empty for a look-up.
    package static func body(of request: GroupRequest) -> ByteBuffer {
        guard case .change(let change) = request else { return ByteBuffer() }
        var writer = JSONWriter(reservingCapacity: 256 + change.tokens.count * 192)
        writer.beginObject()
        writer.member("operation", change.operation.rawValue)
        if let name = change.name { writer.member("notification_key_name", name) }
        if let key = change.key { writer.member("notification_key", key) }
        writer.key("registration_ids")
        writer.beginArray()
        for token in change.tokens { writer.string(token) }
        writer.endArray()
        writer.endObject()
        return writer.finish()
    }
}
