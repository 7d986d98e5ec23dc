import Foundation

/// The members of a JSON object in a control request, read by name and type.
struct ControlMembers {
    private let members: [String: JSONValue]
    private let path: String

    init(_ members: [String: JSONValue], path: String) {
        self.members = members
        self.path = path
    }

    init(body: [UInt8]) throws(ControlError) {
        do {
            self.init(try JSONValue.members(of: body), path: "")
        } catch {
            throw .badRequest("the body is not a JSON object: \(error.reason)")
        }
    }

    var names: [String] { self.members.keys.sorted() }

    func allow(_ names: Set<String>) throws(ControlError) {
        guard let unknown = self.names.first(where: { !names.contains($0) }) else { return }
        throw .badRequest("unknown member \(self.field(unknown))")
    }

    /// A string, or `nil` if absent.
    func string(_ name: String) throws(ControlError) -> String? {
        switch self.members[name] {
        case nil: return nil
        case .string(let text)?: return text
        default: throw .badRequest("\(self.field(name)) must be a string")
        }
    }

    /// A boolean, or `nil` if absent.
    func boolean(_ name: String) throws(ControlError) -> Bool? {
        switch self.members[name] {
        case nil: return nil
        case .bool(let flag)?: return flag
        default: throw .badRequest("\(self.field(name)) must be true or false")
        }
    }

    /// An integer within bounds, or `nil` if absent.
    func integer(_ name: String, in range: ClosedRange<Int>) throws(ControlError) -> Int? {
        guard let value = self.members[name] else { return nil }
        guard case .number(let number) = value, let integer = Int(exactly: number.doubleValue), range.contains(integer)
        else {
            throw .badRequest("\(self.field(name)) must be an integer in \(range.lowerBound) to \(range.upperBound)")
        }
        return integer
    }

    /// An object, or `nil` if absent.
    func object(_ name: String) throws(ControlError) -> ControlMembers? {
        switch self.members[name] {
        case nil: return nil
        case .object(let members)?: return ControlMembers(members, path: self.field(name))
        default: throw .badRequest("\(self.field(name)) must be an object")
        }
    }

    /// An array of non-empty strings, or `nil` if absent.
    func strings(_ name: String) throws(ControlError) -> [String]? {
        guard let value = self.members[name] else { return nil }
        guard case .array(let entries) = value else {
            throw .badRequest("\(self.field(name)) must be an array of strings")
        }
        var strings: [String] = []
        for entry in entries {
            guard case .string(let text) = entry, !text.isEmpty else {
                throw .badRequest("\(self.field(name)) must hold strings that are not empty")
            }
            strings.append(text)
        }
        return strings
    }

    private func field(_ name: String) -> String {
        self.path.isEmpty ? name : self.path + "." + name
    }
}

/// The reason why a control request is refused.
struct ControlError: Error, Equatable {
    let status: Int
    let message: String
    var allow: String?

    static func badRequest(_ message: String) -> Self {
        Self(status: 400, message: message)
    }

    /// The message as the member `error` of an object.
    var answer: Answer {
        Answer(
            status: self.status,
            contentType: "application/json; charset=UTF-8",
            body: #"{"error":"# + JSONValue.quoted(self.message) + "}",
            headers: self.allow.map { [HeaderField(name: "Allow", value: $0)] } ?? []
        )
    }
}
