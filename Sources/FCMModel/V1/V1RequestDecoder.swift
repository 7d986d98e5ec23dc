package import NIOCore
import StrictJSON

/// A valid request to the v1 facade's `messages:send`.
package struct V1SendRequest: Sendable {
    /// The target. A group's key in `token` looks like a token, and is read as a token.
    package let target: Target
    /// The message as the caller wrote it, for a v1 upstream.
    package let message: Message
    /// The payload's size in bytes (V-SIZE).
    package let payloadBytes: Int
    fileprivate let content: JSONValue

    /// Returns the request in the legacy protocol's form, for a legacy upstream. Throws the refusal of the first field
    /// that legacy can't express, so that nothing is lost.
    ///
    /// An `apns-expiration` is a time in seconds since 1970, like `now`. The time to live is their difference.
    package func legacyRequest(now: Int) throws(Refusal) -> LegacySendRequest {
        switch self.target {
        case .installation, .installations:
            throw .notCarried("message.fid")
        case .condition(let condition) where !condition.fits(.legacy):
            throw .notCarried("message.condition")
        case .token, .tokens, .topic, .condition, .notificationKey, .deviceGroup:
            break
        }
        var base = Message()
        base.dryRun = self.message.dryRun
        var translation = V1LegacyTranslation(of: base, now: now)
        let message: Message
        do throws(V1LegacyTranslation.Failure) {
            message = try translation.message(from: self.content)
        } catch {
            throw error.refusal
        }
        let payloadBytes = message.payloadBytes
        guard payloadBytes <= self.target.maxPayloadBytes else {
            throw .tooBig(payloadBytes, limit: self.target.maxPayloadBytes)
        }
        return LegacySendRequest(target: self.target, message: message, payloadBytes: payloadBytes)
    }
}

/// Reads and validates a request to the v1 facade's `messages:send` (V-FACADE).
///
/// The checks run in Google's order: syntax, names and types, the target, values, data keys, size.
package enum V1RequestDecoder {
    /// The members that name a target. Each name has only one spelling.
    private static let targetKeys = ["token", "fid", "topic", "condition"]

    package static func decode(_ body: ByteBuffer) throws(Refusal) -> V1SendRequest {
        let root = try Self.parse(body)
        var checker = V1Schema.Checker(limit: 1)
        checker.check(root, .message(.request), at: "")
        if let problem = checker.misformed.first { throw problem.refusal }
        guard let content = root.field("message"), let members = content.members else { throw .noTarget }
        let target = try Self.target(of: content)
        if let problem = checker.badValues.first { throw problem.refusal }
        for member in content.field("data")?.members.map(Array.init) ?? [] where Self.isRefused(member.key) {
            throw .badDataKey(member.key)
        }
        let payloadBytes = Self.payloadBytes(of: content)
        guard payloadBytes <= target.maxPayloadBytes else { throw .tooBig(payloadBytes, limit: target.maxPayloadBytes) }
        var message = Self.options(of: content)
        message.dryRun = root.field("validate_only", or: "validateOnly")?.bool ?? false
        message.passThrough = Self.passThrough(members, maxBytes: body.readableBytes)
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
        let given = Self.targetKeys.filter { content.field($0) != nil }
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

    /// True if v1 itself reserves a key of `data`. v1 reserves fewer keys than legacy.
    private static func isRefused(_ dataKey: String) -> Bool {
        let bytes = dataKey.utf8
        return bytes.isEmpty || ["from", "message_type"].contains(dataKey.protocolWord)
            || bytes.starts(with: "google.".utf8) || bytes.starts(with: "gcm.notification.".utf8)
    }

    /// Returns the payload's size by L-SIZE (V-SIZE): the common notification, and the largest data of any platform.
    ///
    /// FCM also counts other parts. If those make a message too big, FCM refuses it.
    static func payloadBytes(of content: JSONValue) -> Int {
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

    /// Returns the members of a checked message, without its target and without `null`.
    private static func passThrough(_ message: JSONMembers, maxBytes: Int) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: maxBytes)
        writer.beginObject()
        for member in message where !member.value.isNull {
            let key = member.key
            if Self.targetKeys.contains(key) { continue }
            writer.key(key)
            writer.value(member.value)
        }
        writer.endObject()
        return writer.finish()
    }

    /// Returns a message with only those options of a checked message that limits and load shedding need.
    static func options(of content: JSONValue) -> Message {
        var message = Message()
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
        return message
    }
}

/// The v1 facade's refusals before anything is sent (V-FACADE), in Google's words.
///
/// Each refusal names one field, by a path such as `message.android.ttl`.
extension Refusal {
    private static func v1(
        _ code: OutcomeCode,
        _ path: V1Path,
        _ detail: String,
        isSyntactic: Bool = false
    ) -> Refusal {
        var refusal = Refusal(code, detail)
        refusal.fields = [Field(code, at: path.text, detail)]
        refusal.isSyntactic = isSyntactic
        return refusal
    }

    // MARK: Refused by Google's front end

    static func unreadable(_ error: JSONParseError) -> Refusal {
        let text = "Invalid JSON payload received. \(error.reason) at position \(error.offset)."
        let names = error.pointer.description.split(separator: "/").map(String.init)
        return .v1(OutcomeCode(error.code), names.reduce("") { $0.appending($1) }, text, isSyntactic: true)
    }

    static func unknown(_ field: V1Path) -> Refusal {
        let text = "Invalid JSON payload received. Cannot find field: \(field.text)"
        return .v1(.unknownField, field, text, isSyntactic: true)
    }

    static func wrongType(_ field: V1Path, _ type: String) -> Refusal {
        .v1(.invalidField, field, "Invalid value at '\(field.text)' (\(type))", isSyntactic: true)
    }

    static func repeated(_ field: V1Path) -> Refusal {
        let text = "Invalid JSON payload received. '\(field.text)' is given twice"
        return .v1(.duplicateKey, field, text, isSyntactic: true)
    }

    // MARK: Refused by FCM

    static func badValue(_ field: V1Path, _ demand: String) -> Refusal {
        .v1(.invalidField, field, "Invalid value at '\(field.text)': \(demand)")
    }

    static var noTarget: Refusal { .v1(.invalidTarget, "message", "Recipient of the message is not set.") }

    static func badTarget(_ field: V1Path, _ text: String) -> Refusal { .v1(.invalidTarget, field, text) }

    static func badDataKey(_ key: String) -> Refusal {
        .v1(.invalidDataKey, "message.data", "Invalid data payload key: \(V1Path("").appending(key).text)")
    }

    static func tooBig(_ bytes: Int, limit: Int) -> Refusal {
        .v1(
            .messageTooBig,
            "message",
            "The message is too big: \(bytes) bytes of payload, at most \(limit) are allowed"
        )
    }

    // MARK: Refused by the gateway

    static func notCarried(_ field: V1Path) -> Refusal {
        .v1(.invalidField, field, "'\(field.text)' can't be sent by the legacy protocol, which serves this project")
    }

    /// Refuses a field that differs from the same option of another platform. Legacy has one option for all platforms.
    static func disagreement(_ field: V1Path) -> Refusal {
        let text =
            "'\(field.text)' differs from the same option elsewhere; the legacy protocol, which serves this project, "
            + "has one for all platforms"
        return .v1(.invalidField, field, text)
    }
}

extension JSONValue {
    /// Returns a member of a checked object by its name in `snake_case`, or in `lowerCamelCase` if that differs. `null`
    /// counts as absent.
    func field(_ name: String, or camelCase: String? = nil) -> JSONValue? {
        let value = self[name] ?? camelCase.flatMap { self[$0] }
        return value?.isNull == false ? value : nil
    }

    /// Returns a text by its name. The empty text counts as absent, because it is protobuf's default.
    func text(_ name: String, or camelCase: String? = nil) -> String? {
        let text = self.field(name, or: camelCase)?.string
        return text?.isEmpty == false ? text : nil
    }
}

/// A duration in protobuf's JSON form: decimal seconds, up to nine fractional digits, and an `s`.
struct V1Duration: Sendable, Hashable {
    /// The whole seconds, without the fraction.
    let seconds: Int
    let hasFraction: Bool

    /// The seconds, rounded up so that a delay does not end too early.
    var roundedUp: Int {
        self.hasFraction && self.seconds < .max ? self.seconds + 1 : self.seconds
    }

    /// Reads a text. Returns `nil` for another form, a negative duration, or seconds that exceed an `Int`.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.last == UInt8(ascii: "s") else { return nil }
        let number = bytes.dropLast()
        let whole = number.prefix { $0 != UInt8(ascii: ".") }
        let fraction = number[whole.endIndex...]
        guard !whole.isEmpty, whole.allSatisfy(\.isDigit), let seconds = Int(String(decoding: whole, as: UTF8.self))
        else { return nil }
        if !fraction.isEmpty {
            let digits = fraction.dropFirst()
            guard (1...9).contains(digits.count), digits.allSatisfy(\.isDigit) else { return nil }
        }
        self.seconds = seconds
        self.hasFraction = fraction.contains { $0.isDigit && $0 != UInt8(ascii: "0") }
    }
}
