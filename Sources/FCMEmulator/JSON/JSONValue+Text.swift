import Foundation

/// Writing values as text, where the protocol counts or delivers them as text (L-STRINGIFY).
extension JSONValue {
    /// What the value becomes as a data value: a string as it is, anything else as JSON without blanks, members sorted
    /// by code point.
    ///
    /// A number is written as Foundation understood it, so `1.50` becomes `1.5` (the gateway itself keeps the text).
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

    /// A string as JSON, with the escapes JSON demands and no others.
    static func quoted(_ text: String) -> String {
        // Ids and names need no escape as a rule; bulk answers are mostly made of them.
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
