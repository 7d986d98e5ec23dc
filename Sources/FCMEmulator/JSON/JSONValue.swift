import Foundation

/// One value of a JSON text as Foundation read it, told apart by its JSON type.
enum JSONValue {
    case null
    case bool(Bool)
    case number(NSNumber)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// The JSON type's name, for messages.
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

    /// Reads a text whose root must be an object.
    ///
    /// - Throws: what ``JSONTextCheck`` or Foundation found wrong, or that the root is no object.
    static func members(of bytes: [UInt8]) throws(JSONTextError) -> [String: JSONValue] {
        guard case .object(let members) = try Self.read(bytes) else {
            throw JSONTextError(reason: "the root is not an object")
        }
        return members
    }

    /// Reads a text.
    ///
    /// - Throws: what ``JSONTextCheck`` or Foundation found wrong.
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
            // `as? Bool` also succeeds for the numbers 0 and 1; only the class tells them from booleans.
            let isBool = type(of: number) == type(of: NSNumber(value: true))
            self = isBool ? .bool(number.boolValue) : .number(number)
        default:
            self = .null
        }
    }
}
