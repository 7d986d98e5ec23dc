import Foundation
package import NIOCore
package import StrictJSON

/// A JSON value of a vector or of an answer: members in the order of the text, numbers as they were written.
package indirect enum VectorJSON: Sendable {
    case object([Member])
    case array([VectorJSON])
    case string(String)
    case number(JSONNumber)
    case bool(Bool)
    case null

    /// One member of an object.
    package struct Member: Sendable {
        package let key: String
        package let value: VectorJSON

        package init(key: String, value: VectorJSON) {
            self.key = key
            self.value = value
        }
    }

    /// Vector files are far larger than any request.
    private static let limits = JSONLimits(maxDepth: 64, maxMembers: 1_000_000, maxElements: 1_000_000)

    /// Reads a text; whatever the gateway's parser refuses is refused here too.
    package init(parsing text: ByteBuffer) throws {
        try self.init(JSONDocument(parsing: text, limits: Self.limits).root)
    }

    package init(parsing text: String) throws {
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

    /// The value as JSON without blanks, numbers as written.
    package func serialised() -> ByteBuffer {
        var writer = JSONWriter()
        self.write(to: &writer)
        return writer.finish()
    }

    /// A body: a text as it is, anything else as JSON.
    package func body() -> ByteBuffer {
        if case .string(let text) = self { ByteBuffer(string: text) } else { self.serialised() }
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

/// The value as what it must be; anything else is a problem.
extension VectorJSON {
    package func text() throws -> String {
        guard case .string(let text) = self else { throw VectorProblem("no string: \(self)") }
        return text
    }

    package func integer() throws -> Int {
        guard case .number(let number) = self, let integer = number.integer else {
            throw VectorProblem("no integer: \(self)")
        }
        return integer
    }

    package func flag() throws -> Bool {
        guard case .bool(let flag) = self else { throw VectorProblem("no boolean: \(self)") }
        return flag
    }

    package var isNull: Bool { if case .null = self { true } else { false } }

    package func elements() throws -> [VectorJSON] {
        guard case .array(let elements) = self else { throw VectorProblem("no array: \(self)") }
        return elements
    }

    package func texts() throws -> [String] { try self.elements().map { try $0.text() } }

    /// The members, each of which must be taken.
    package func members() throws -> VectorMembers {
        guard case .object(let members) = self else { throw VectorProblem("no object: \(self)") }
        return VectorMembers(members)
    }

    /// What is made of the members, all of which it must take.
    package func object<Content>(_ read: (inout VectorMembers) throws -> Content) throws -> Content {
        var members = try self.members()
        let content = try read(&members)
        try members.finish()
        return content
    }
}

extension VectorJSON? {
    /// Texts by an index, such as `{"1": "InvalidRegistration"}`; none where there is no value.
    package func textsByIndex() throws -> [Int: String] {
        var texts: [Int: String] = [:]
        guard var members = try self?.members() else { return texts }
        for member in members.takeAll() {
            guard let index = Int(member.key) else { throw VectorProblem("\(member.key) is no index") }
            texts[index] = try member.value.text()
        }
        return texts
    }
}

extension VectorJSON {
    /// The value with `$repeat`, `$concat` and `$list` carried out, inner markers before outer ones.
    ///
    /// Matchers (`$any`) stay; ``mismatches(in:allowingMore:)`` understands them.
    package func expanded() throws -> VectorJSON {
        switch self {
        case .string, .number, .bool, .null:
            return self
        case .array(let elements):
            return .array(try elements.map { try $0.expanded() })
        case .object(let members):
            let members = try members.map { Member(key: $0.key, value: try $0.value.expanded()) }
            return try Self.marker(members) ?? .object(members)
        }
    }

    /// The value that a marker stands for; `nil` if the members are none.
    private static func marker(_ members: [Member]) throws -> VectorJSON? {
        guard members.contains(where: { ["$repeat", "$concat", "$list"].contains($0.key) }) else { return nil }
        var marker = VectorMembers(members)
        let value: VectorJSON
        if let text = marker.takeIfPresent("$repeat") {
            value = .string(String(repeating: try text.text(), count: try marker.take("times").integer()))
        } else if let parts = marker.takeIfPresent("$concat") {
            value = .string(try parts.elements().map { try $0.text() }.joined())
        } else {
            let template = try marker.take("$list")
            let count = try marker.take("count").integer()
            value = .array((0..<count).map { template.numbered($0) })
        }
        try marker.finish()
        return value
    }

    /// A copy of a `$list` template, in which `{i}` is a number.
    private func numbered(_ index: Int) -> VectorJSON {
        switch self {
        case .number, .bool, .null: self
        case .string(let text): .string(text.replacing("{i}", with: String(index)))
        case .array(let elements): .array(elements.map { $0.numbered(index) })
        case .object(let members): .object(members.map { Member(key: $0.key, value: $0.value.numbered(index)) })
        }
    }
}

extension VectorJSON {
    /// What differs in an answer from this expectation, each with the path to it: member order is free, numbers are
    /// equal by value, `$any` is a matcher, and the outermost object may be allowed further members.
    package func mismatches(in actual: VectorJSON, allowingMore: Bool = false) -> [String] {
        var found: [String] = []
        self.compare(with: actual, at: "$", allowingMore: allowingMore, found: &found)
        return found
    }

    private func compare(with actual: VectorJSON, at path: String, allowingMore: Bool, found: inout [String]) {
        switch (self, actual) {
        case (.object(let expected), _) where expected.contains { $0.key == "$any" }:
            if !Self.matcher(expected, accepts: actual) { found.append("\(path): \(actual) does not match \(self)") }
        case (.object(let expected), .object(let members)):
            for member in expected {
                guard let other = members.first(where: { Self.same($0.key, member.key) }) else {
                    found.append("\(path).\(member.key) is missing")
                    continue
                }
                let path = "\(path).\(member.key)"
                member.value.compare(with: other.value, at: path, allowingMore: false, found: &found)
            }
            for member in members where !allowingMore && !expected.contains(where: { Self.same($0.key, member.key) }) {
                found.append("\(path).\(member.key) is too much")
            }
        case (.array(let expected), .array(let elements)):
            if expected.count != elements.count {
                found.append("\(path) has \(elements.count) elements, not \(expected.count)")
            }
            for (index, pair) in zip(expected, elements).enumerated() {
                pair.0.compare(with: pair.1, at: "\(path)[\(index)]", allowingMore: false, found: &found)
            }
        case (.string(let expected), .string(let text)) where Self.same(expected, text): break
        case (.number(let expected), .number(let number)) where expected.canonicalText == number.canonicalText: break
        case (.bool(let expected), .bool(let flag)) where expected == flag: break
        case (.null, .null): break
        default: found.append("\(path) is \(actual), not \(self)")
        }
    }

    /// Whether a `$any` accepts a value; one that is not known accepts nothing.
    private static func matcher(_ members: [Member], accepts actual: VectorJSON) -> Bool {
        guard members.count == 1, case .string(let kind)? = members.first?.value else { return false }
        switch (kind, actual) {
        case ("positive_int", .number(let number)):
            return number.isPlainInteger && number.integer.map { (1...(1 << 53 - 1)).contains($0) } ?? false
        case ("nonempty_string", .string(let text)):
            return !text.isEmpty
        default:
            return false
        }
    }

    /// Equality of bytes; `==` would take composed and decomposed letters for one another.
    private static func same(_ text: String, _ other: String) -> Bool {
        text.utf8.elementsEqual(other.utf8)
    }
}

/// The members of one object of a vector; a test takes those that it knows, and none may be left over.
package struct VectorMembers: Sendable {
    private var left: [VectorJSON.Member]

    init(_ members: [VectorJSON.Member]) {
        self.left = members
    }

    package mutating func takeIfPresent(_ key: String) -> VectorJSON? {
        guard let index = self.left.firstIndex(where: { $0.key == key }) else { return nil }
        return self.left.remove(at: index).value
    }

    package mutating func take(_ key: String) throws -> VectorJSON {
        guard let value = self.takeIfPresent(key) else { throw VectorProblem("the member \(key) is missing") }
        return value
    }

    /// Takes what every vector begins with, and returns its id.
    package mutating func takeHeading() throws -> String {
        let id = try self.take("id").text()
        guard try !self.take("why").text().isEmpty else { throw VectorProblem("\(id) has no reason") }
        guard try !self.take("ref").elements().map({ try $0.text() }).isEmpty else {
            throw VectorProblem("\(id) follows no rule")
        }
        return id
    }

    /// Takes all that is left, as names and values.
    package mutating func takeAll() -> [VectorJSON.Member] {
        defer { self.left = [] }
        return self.left
    }

    /// Refuses members that nobody took.
    package func finish() throws {
        guard self.left.isEmpty else { throw VectorProblem("unknown members: \(self.left.map(\.key))") }
    }
}

/// The conformance vectors in `Tests/Vectors`.
package enum VectorFile {
    /// The vectors of one file, with markers expanded, after a check of the file's own heading.
    package static func read(_ name: String) throws -> [VectorJSON] {
        let file = try self.directory().appending(path: name + ".json")
        var heading = try VectorJSON(parsing: ByteBuffer(bytes: try Data(contentsOf: file))).members()
        let format = try heading.take("format").text()
        let version = try heading.take("version").integer()
        let count = try heading.take("count").integer()
        let vectors = try heading.take("vectors").elements().map { try $0.expanded() }
        try heading.finish()
        guard format == "fcm-vectors/\(name)", version == 1 else {
            throw VectorProblem("\(name) has the format \(format), version \(version)")
        }
        guard vectors.count == count else {
            throw VectorProblem("\(name) holds \(vectors.count) vectors, not \(count)")
        }
        return vectors
    }

    /// The first directory above this file that is the project's root.
    private static func directory() throws -> URL {
        var root = URL(filePath: #filePath)
        while root.path != "/" {
            root.deleteLastPathComponent()
            let vectors = root.appending(path: "Tests/Vectors")
            let manifest = root.appending(path: "Package.swift")
            let files = FileManager.default
            if files.fileExists(atPath: manifest.path), files.fileExists(atPath: vectors.path) { return vectors }
        }
        throw VectorProblem("there is no Tests/Vectors above \(#filePath)")
    }
}

/// A vector whose members a test reads itself.
package struct Vector: Sendable, CustomStringConvertible {
    package let id: String
    package let members: VectorMembers

    package var description: String { self.id }

    /// The vectors of one file in which a member has a value.
    package static func read(_ file: String, where key: String, is value: String) throws -> [Vector] {
        try VectorFile.read(file)
            .compactMap { vector in
                var members = try vector.members()
                let id = try members.takeHeading()
                return try members.take(key).text() == value ? Vector(id: id, members: members) : nil
            }
    }
}

/// Why a vector can't be used as a test; a vector that is not understood whole must not pass.
package struct VectorProblem: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
