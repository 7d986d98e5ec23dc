import NIOCore
import StrictJSON

/// Reads the `notification` object of a legacy request.
enum LegacyNotificationDecoder {
    private static let badge = "badge"
    private static let locArgs: Set<String> = ["title_loc_args", "body_loc_args"]

    /// Checks the JSON type of a known key; unknown keys may hold anything.
    static func checkType(of member: JSONMember) throws(Refusal) {
        guard let key = member.key.protocolWord else { return }
        let kind = member.value.kind
        if NotificationKey(rawValue: key) != nil {
            guard kind == .string else { throw Refusal(.invalidField, "\(key) must be a string") }
        } else if key == Self.badge {
            guard kind == .string || kind == .number else {
                throw Refusal(.invalidField, "\(key) must be a string or an integer")
            }
        } else if Self.locArgs.contains(key) {
            guard kind == .string || kind == .array else {
                throw Refusal(.invalidField, "\(key) must be an array or a string that holds one")
            }
        }
    }

    /// Decodes members whose types have been checked.
    ///
    /// - Returns: the notification, `nil` where no known key is set, and its size in bytes as written (L-SIZE).
    /// - Throws: `invalid_field` for a bad `color`, `badge` or list of arguments.
    static func decode(_ members: JSONMembers) throws(Refusal) -> (Notification?, bytes: Int) {
        var notification = Notification()
        var bytes = 0
        for member in members where !member.value.isNull {
            guard let name = member.key.protocolWord else { continue }
            let known = NotificationKey(rawValue: name)
            guard known != nil || name == Self.badge || Self.locArgs.contains(name) else { continue }
            let written = member.value.string ?? member.value.canonicalText
            guard !written.isEmpty else { continue }
            if let known {
                if known == .color, !ValueRules.isColor(written) {
                    throw Refusal(.invalidField, "color must be # and six hexadecimal digits")
                }
                notification[known] = written
            } else if name == Self.badge {
                notification.badge = try Self.badge(member.value, written)
            } else if name == "title_loc_args" {
                notification.titleLocArgs = try Self.arguments(member.value, written, key: name)
            } else {
                notification.bodyLocArgs = try Self.arguments(member.value, written, key: name)
            }
            bytes += name.utf8.count + written.utf8.count
        }
        return (notification.isEmpty ? nil : notification, bytes)
    }

    private static func badge(_ value: JSONValue, _ written: String) throws(Refusal) -> Int {
        let badge: Int? =
            if value.kind == .string {
                ValueRules.badge(fromDigits: written)
            } else if let number = value.number, number.isPlainInteger {
                number.integer
            } else {
                nil
            }
        guard let badge, (0...ValueRules.maxBadge).contains(badge) else {
            throw Refusal(.invalidField, "badge must be an integer from 0 to \(ValueRules.maxBadge)")
        }
        return badge
    }

    /// Reads a list that is a JSON array or a string holding one (L-LOCARGS).
    private static func arguments(
        _ value: JSONValue,
        _ written: String,
        key: String
    ) throws(Refusal) -> [String] {
        let refusal = Refusal(.invalidField, "\(key) must be a JSON array of texts")
        let elements =
            value.kind == .string
            ? (try? JSONDocument(parsing: ByteBuffer(string: written)))?.root.elements : value.elements
        guard let elements else { throw refusal }
        var arguments: [String] = []
        for element in elements {
            switch element.kind {
            case .string, .number, .bool:
                arguments.append(element.string ?? element.number?.text ?? element.canonicalText)
            case .null, .array, .object:
                throw refusal
            }
        }
        return arguments
    }
}
