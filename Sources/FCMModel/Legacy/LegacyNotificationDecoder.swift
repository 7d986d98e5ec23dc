import NIOCore
import StrictJSON

/// Reads the `notification` object of a legacy request.
enum LegacyNotificationDecoder {
    private static let badge = "badge"
    private static let locArgs: Set<String> = ["title_loc_args", "body_loc_args"]

    /// Checks the JSON type of a known key; unknown keys may hold anything.
    static func checkType(of member: JSONMember) throws(LegacyRefusal) {
        if NotificationKey(rawValue: member.key) != nil {
            guard member.value.string != nil else { throw .wrongType(member.key, "a string") }
        } else if member.key == Self.badge {
            guard member.value.string != nil || member.value.number != nil else {
                throw .wrongType(member.key, "a string or an integer")
            }
        } else if Self.locArgs.contains(member.key) {
            guard member.value.string != nil || member.value.elements != nil else {
                throw .wrongType(member.key, "an array or a string that holds one")
            }
        }
    }

    /// Decodes members whose types have been checked.
    ///
    /// - Returns: the notification, `nil` where no known key is set, and its size in bytes as written (L-SIZE).
    /// - Throws: ``LegacyRefusal/invalidParameters(reason:)`` for a bad `color`, `badge` or list of arguments.
    static func decode(_ members: JSONMembers) throws(LegacyRefusal) -> (Notification?, bytes: Int) {
        var notification = Notification()
        var bytes = 0
        for member in members where !member.value.isNull {
            let written = member.value.string ?? member.value.canonicalText
            guard !written.isEmpty else { continue }
            if let key = NotificationKey(rawValue: member.key) {
                if key == .color, !ValueRules.isColor(written) {
                    throw .invalidParameters(reason: "color must be # and six hexadecimal digits")
                }
                notification[key] = written
            } else if member.key == Self.badge {
                notification.badge = try Self.badge(member.value)
            } else if member.key == "title_loc_args" {
                notification.titleLocArgs = try Self.arguments(member.value, key: member.key)
            } else if member.key == "body_loc_args" {
                notification.bodyLocArgs = try Self.arguments(member.value, key: member.key)
            } else {
                continue
            }
            bytes += member.key.utf8.count + written.utf8.count
        }
        return (notification.isEmpty ? nil : notification, bytes)
    }

    private static func badge(_ value: JSONValue) throws(LegacyRefusal) -> Int {
        let badge: Int? =
            if let digits = value.string {
                ValueRules.badge(fromDigits: digits)
            } else if let number = value.number, number.isPlainInteger {
                number.integer
            } else {
                nil
            }
        guard let badge, (0...ValueRules.maxBadge).contains(badge) else {
            throw .invalidParameters(reason: "badge must be an integer from 0 to \(ValueRules.maxBadge)")
        }
        return badge
    }

    /// Reads a list that is a JSON array or a string holding one (L-LOCARGS).
    private static func arguments(_ value: JSONValue, key: String) throws(LegacyRefusal) -> [String] {
        let refusal = LegacyRefusal.invalidParameters(reason: "\(key) must be a JSON array of texts")
        let elements: JSONElements?
        if let text = value.string {
            elements = (try? JSONDocument(parsing: ByteBuffer(string: text)))?.root.elements
        } else {
            elements = value.elements
        }
        guard let elements else { throw refusal }
        var arguments: [String] = []
        for element in elements {
            switch element.kind {
            case .string, .number, .bool:
                arguments.append(element.string ?? element.canonicalText)
            case .null, .array, .object:
                throw refusal
            }
        }
        return arguments
    }
}
