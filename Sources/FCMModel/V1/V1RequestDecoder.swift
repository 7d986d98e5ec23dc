package import NIOCore
import StrictJSON

/// Reads and validates a request to the v1 facade's `messages:send` (V-FACADE).
///
/// The checks run in the order of Google's: syntax, names and types, the target, values, data keys, size.
package enum V1RequestDecoder {
    /// Decodes a body.
    ///
    /// - Throws: the first failing check.
    package static func decode(_ body: ByteBuffer) throws(Refusal) -> V1SendRequest {
        let root = try Self.parse(body)
        var checker = V1SchemaChecker()
        try checker.check(root, .request, at: "")
        guard let content = root.field("message"), let members = content.members else { throw .noTarget }
        let target = try Self.target(of: content)
        if let refusal = checker.badValue { throw refusal }
        try Self.checkCollapseID(of: content)
        for member in content.field("data")?.members.map(Array.init) ?? [] where Self.isRefused(member.key) {
            throw .badDataKey(member.key)
        }
        let payloadBytes = Self.payloadBytes(of: content)
        guard payloadBytes <= target.maxPayloadBytes else {
            throw .tooBig(payloadBytes, limit: target.maxPayloadBytes)
        }
        var message = Message()
        message.dryRun = root.field("validate_only", or: "validateOnly")?.bool ?? false
        message.verbatim = V1Verbatim(members, maxBytes: body.readableBytes)
        Self.readOptions(of: content, into: &message)
        return V1SendRequest(target: target, message: message, payloadBytes: payloadBytes, content: content)
    }

    private static func parse(_ body: ByteBuffer) throws(Refusal) -> JSONValue {
        do {
            return try JSONDocument(parsing: body).root
        } catch {
            throw .unreadable(error)
        }
    }

    // MARK: Target

    private static func target(of content: JSONValue) throws(Refusal) -> Target {
        let given = ["token", "fid", "topic", "condition"].filter { content.field($0) != nil }
        guard given.count <= 1 else {
            throw .badTarget("message.\(given[1])", "Exactly one of token, fid, topic and condition is allowed")
        }
        guard let name = given.first, let text = content.text(name) else { throw .noTarget }
        switch name {
        case "token": return .token(text)
        case "fid": return .installation(text)
        case "topic":
            guard let topic = TopicName(text) else { throw .badTarget("message.topic", "Malformed topic name") }
            return .topic(topic)
        default:
            guard let condition = try? TopicCondition(parsing: text), condition.fits(.v1) else {
                throw .badTarget("message.condition", "Invalid condition expression provided.")
            }
            return .condition(condition)
        }
    }

    // MARK: Values

    /// The keys that v1 itself reserves, fewer than legacy does.
    private static func isRefused(_ dataKey: String) -> Bool {
        let bytes = dataKey.utf8
        return bytes.isEmpty || ["from", "message_type"].contains(dataKey.protocolWord)
            || bytes.starts(with: "google.".utf8) || bytes.starts(with: "gcm.notification.".utf8)
    }

    private static func checkCollapseID(of content: JSONValue) throws(Refusal) {
        let id = content.field("apns")?.field("headers")?.text("apns-collapse-id")
        guard let id, id.utf8.count > V1MessageWriter.maxCollapseIDBytes else { return }
        throw .badValue("message.apns.headers.apns-collapse-id", "at most \(V1MessageWriter.maxCollapseIDBytes) bytes")
    }

    /// The payload's size by L-SIZE (V-SIZE): the common notification, and the largest of the data that some platform
    /// gets.
    ///
    /// What else FCM counts, it refuses itself.
    private static func payloadBytes(of content: JSONValue) -> Int {
        let notification = Self.bytes(of: content.field("notification"))
        let common = Self.bytes(of: content.field("data"))
        let android = Self.bytes(of: content.field("android")?.field("data"))
        let web = Self.bytes(of: content.field("webpush")?.field("data"))
        return notification + max(common, android, web)
    }

    private static func bytes(of texts: JSONValue?) -> Int {
        var bytes = 0
        for member in texts?.members.map(Array.init) ?? [] {
            guard let textBytes = member.value.stringByteCount else { continue }
            bytes += member.keyByteCount + textBytes
        }
        return bytes
    }

    /// Reads what limits and shedding look at.
    private static func readOptions(of content: JSONValue, into message: inout Message) {
        let android = content.field("android")
        message.collapseKey =
            android?.text("collapse_key", or: "collapseKey")
            ?? content.field("apns")?.field("headers")?.text("apns-collapse-id")
        message.priority = android?.text("priority").flatMap { Message.Priority(rawValue: $0.lowercased()) }
        switch content.field("apns")?.field("headers")?.text("apns-priority").map({ $0.protocolWord ?? "" }) {
        case "10": message.priority = .high
        case .some where message.priority == nil: message.priority = .normal
        case .some, nil: break
        }
        message.timeToLive = android?.text("ttl").flatMap(V1Duration.init)?.seconds
    }
}
