import Foundation

/// Values inside `notification` that have a form of their own.
extension LegacySendValidator {
    private static let badges = 0...2_147_483_647

    /// Checks color, badge and the arguments of localised texts (L-COLOR, L-BADGE, L-LOCARGS).
    mutating func checkNotification(_ members: [String: JSONValue]) throws(LegacyRefusal) {
        if let color = members["color"], !Self.isColor(color.text) {
            throw .invalidParameters(reason: "notification.color is not #rrggbb")
        }
        if let badge = members["badge"] {
            try self.checkBadge(badge)
        }
        for name in ["title_loc_args", "body_loc_args"] {
            guard let value = members[name] else { continue }
            try self.checkArguments(value, field: "notification.\(name)")
        }
    }

    private static func isColor(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count == 7 && bytes[0] == UInt8(ascii: "#") && bytes.dropFirst().allSatisfy(Self.isHexDigit)
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            return true
        default:
            return false
        }
    }

    private mutating func checkBadge(_ badge: JSONValue) throws(LegacyRefusal) {
        let value: Int?
        switch badge {
        case .number(let number):
            self.notes.append("notification.badge is a number, not a string")
            value = Int(exactly: number.doubleValue)
        case .string(let text):
            // `Int(_:)` also reads a sign.
            value = text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
        case .null, .bool, .array, .object:
            value = nil
        }
        guard let value, Self.badges.contains(value) else {
            throw .invalidParameters(reason: "notification.badge is no integer in 0 to 2147483647")
        }
    }

    private mutating func checkArguments(_ value: JSONValue, field: String) throws(LegacyRefusal) {
        var list = value
        switch value {
        case .string(let text):
            guard let read = try? JSONValue.read(Array(text.utf8)) else {
                throw .invalidParameters(reason: "\(field) holds no JSON")
            }
            list = read
        case .array:
            self.notes.append("\(field) is an array, not a string holding one")
        case .null, .bool, .number, .object:
            break
        }
        guard case .array(let entries) = list, entries.allSatisfy(Self.isArgument) else {
            throw .invalidParameters(reason: "\(field) is no array of strings, numbers and booleans")
        }
    }

    private static func isArgument(_ value: JSONValue) -> Bool {
        switch value {
        case .string, .number, .bool: true
        case .null, .array, .object: false
        }
    }
}
