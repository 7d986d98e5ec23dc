import Foundation

/// One value of a JSON text as Foundation read it, classified by its JSON type.
enum JSONValue {
    case null
    case bool(Bool)
    case number(NSNumber)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    static func members(of bytes: [UInt8]) throws(JSONTextError) -> [String: JSONValue] {
        guard case .object(let members) = try Self.read(bytes) else {
            throw JSONTextError(reason: "the root is not an object")
        }
        return members
    }

    static func read(_ bytes: [UInt8]) throws(JSONTextError) -> JSONValue {
        try JSONTextCheck.run(bytes)
        do {
            return Self(try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed))
        } catch {
            let detail = (error as NSError).userInfo[NSDebugDescriptionErrorKey] as? String
            throw JSONTextError(reason: detail ?? "the text is not JSON")
        }
    }

    private init(_ value: Any) {
        switch value {
        case let text as String:
            self = .string(text)
        case let list as [Any]:
            self = .array(list.map { Self($0) })
        case let members as [String: Any]:
            self = .object(members.mapValues { Self($0) })
        case let number as NSNumber:
            // `as? Bool` also succeeds for the numbers 0 and 1; only the class distinguishes booleans.
            let isBool = type(of: number) == type(of: NSNumber(value: true))
            self = isBool ? .bool(number.boolValue) : .number(number)
        default:
            self = .null
        }
    }
}

/// Values as text, for the parts of the protocol that count or deliver text (L-STRINGIFY).
extension JSONValue {
    /// The value as text in `data`: a string unchanged, anything else as JSON without blanks, members sorted by code
    /// point.
    ///
    /// A number has Foundation's form, so `1.50` becomes `1.5` (the gateway itself preserves the text).
    var text: String {
        guard case .string(let text) = self else { return self.compactJSON }
        return text
    }

    /// JSON without blanks.
    var compactJSON: String {
        switch self {
        case .null:
            return "null"
        case .bool(let flag):
            return flag ? "true" : "false"
        case .number(let number):
            return number.stringValue
        case .string(let text):
            return Self.quoted(text)
        case .array(let values):
            return "[" + values.map(\.compactJSON).joined(separator: ",") + "]"
        case .object(let members):
            let names = members.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            let pairs = names.map { Self.quoted($0) + ":" + (members[$0]?.compactJSON ?? "null") }
            return "{" + pairs.joined(separator: ",") + "}"
        }
    }

    static func quoted(_ text: String) -> String {
        // Ids and names rarely need escapes, and most of a bulk answer consists of them.
        guard text.utf8.contains(where: Self.needsEscape) else { return "\"" + text + "\"" }
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\u{08}": result += "\\b"
            case "\u{0C}": result += "\\f"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\u{00}"..<"\u{20}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default:
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }
}

/// Access to the members of an object, by name and type.
extension [String: JSONValue] {
    /// A member's text; `nil` if it is not a string.
    func string(_ name: String) -> String? {
        guard case .string(let text)? = self[name] else { return nil }
        return text
    }

    /// A member's members; empty if it is not an object.
    func object(_ name: String) -> [String: JSONValue] {
        guard case .object(let members)? = self[name] else { return [:] }
        return members
    }

    func strings(_ name: String) -> [String: String] {
        self.object(name).mapValues(\.text)
    }
}
