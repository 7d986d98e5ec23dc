import NIOCore
import StrictJSON

/// A JSON value of a vector or of an answer: members in the order of the text, numbers as they were written.
indirect enum VectorJSON: Sendable {
    case object([Member])
    case array([VectorJSON])
    case string(String)
    case number(JSONNumber)
    case bool(Bool)
    case null

    /// One member of an object.
    struct Member: Sendable {
        let key: String
        let value: VectorJSON
    }

    /// Vector files are far larger than any request.
    private static let limits = JSONLimits(maxDepth: 64, maxMembers: 1_000_000, maxElements: 1_000_000)

    /// Reads a text; whatever the gateway's parser refuses is refused here too.
    init(parsing text: ByteBuffer) throws {
        try self.init(JSONDocument(parsing: text, limits: Self.limits).root)
    }

    /// Reads a text.
    init(parsing text: String) throws {
        try self.init(parsing: ByteBuffer(string: text))
    }

    private init(_ value: JSONValue) throws {
        if let members = value.members {
            self = .object(try members.map { Member(key: $0.key, value: try VectorJSON($0.value)) })
        } else if let elements = value.elements {
            self = .array(try elements.map { try VectorJSON($0) })
        } else if let string = value.string {
            self = .string(string)
        } else if let number = value.number {
            self = .number(number)
        } else if let bool = value.bool {
            self = .bool(bool)
        } else if value.isNull {
            self = .null
        } else {
            throw VectorProblem("a JSON value of no kind")
        }
    }

    /// A whole number.
    static func integer(_ value: Int) throws -> VectorJSON {
        guard let number = JSONNumber(text: String(value)) else { throw VectorProblem("\(value) is no number") }
        return .number(number)
    }

    /// The value as JSON without blanks, numbers as written.
    func serialised() -> ByteBuffer {
        var writer = JSONWriter()
        self.write(to: &writer)
        return writer.finish()
    }

    private func write(to writer: inout JSONWriter) {
        switch self {
        case .object(let members):
            writer.beginObject()
            for member in members {
                writer.key(member.key)
                member.value.write(to: &writer)
            }
            writer.endObject()
        case .array(let elements):
            writer.beginArray()
            for element in elements { element.write(to: &writer) }
            writer.endArray()
        case .string(let text): writer.string(text)
        case .number(let number): writer.number(number)
        case .bool(let flag): writer.bool(flag)
        case .null: writer.null()
        }
    }
}

extension VectorJSON {
    /// The text; anything else is a problem.
    func text() throws -> String {
        guard case .string(let text) = self else { throw VectorProblem("no string: \(self)") }
        return text
    }

    /// The whole number; anything else is a problem.
    func integer() throws -> Int {
        guard case .number(let number) = self, let integer = number.integer else {
            throw VectorProblem("no integer: \(self)")
        }
        return integer
    }

    /// The truth value; anything else is a problem.
    func flag() throws -> Bool {
        guard case .bool(let flag) = self else { throw VectorProblem("no boolean: \(self)") }
        return flag
    }

    /// The elements; anything else is a problem.
    func elements() throws -> [VectorJSON] {
        guard case .array(let elements) = self else { throw VectorProblem("no array: \(self)") }
        return elements
    }

    /// The members, each of which must be taken; anything else is a problem.
    func members() throws -> VectorMembers {
        guard case .object(let members) = self else { throw VectorProblem("no object: \(self)") }
        return VectorMembers(members)
    }
}
