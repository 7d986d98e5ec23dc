import Foundation
import NIOCore
import StrictJSON

/// Properties of every text that `StrictJSON` reads.
enum JSONProperties {
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        let expected = NaiveJSON.read(input)
        let root: JSONValue
        do {
            root = try JSONDocument(parsing: ByteBuffer(bytes: input)).root
        } catch {
            try FuzzFinding.require(expected == nil, "refused, though it is JSON: \(error)")
            try FuzzFinding.require((0...input.count).contains(error.offset), "the offset lies outside: \(error)")
            try FuzzFinding.require(!error.reason.isEmpty, "a refusal without a reason")
            try Self.checkTightLimits(input, default: error)
            try Self.checkPlaceInBuffer(input, refusal: error)
            return
        }
        guard let expected else { throw FuzzFinding("accepted, though it is no JSON within the limits") }
        try FuzzFinding.requireEqual(try Self.value(root, input.count), expected, "the values differ")
        try Self.checkWriting(root, expected)
        try Self.checkFoundation(input, expected)
        try Self.checkTightLimits(input, default: nil)
        try Self.checkPlaceInBuffer(input, refusal: nil)
    }

    /// Reads a value through the public views of a document, which must agree with each other.
    private static func value(_ value: JSONValue, _ byteCount: Int) throws(FuzzFinding) -> NaiveJSON {
        try FuzzFinding.require((0..<byteCount).contains(value.offset), "a value lies outside of the text")
        switch value.kind {
        case .object:
            guard let members = value.members else { throw FuzzFinding("an object without members") }
            var read: [NaiveJSON.Member] = []
            for member in members {
                let name = member.key
                try FuzzFinding.require(member.keyEquals(name), "a name is not its own")
                try FuzzFinding.requireEqual(value[name]?.offset, member.value.offset, "another value under a name")
                read.append(NaiveJSON.Member(name: Array(name.utf8), value: try Self.value(member.value, byteCount)))
            }
            try FuzzFinding.requireEqual(members.count, read.count, "the members are miscounted")
            let hasZero = read.contains { $0.name == [0] }
            try FuzzFinding.requireEqual(value["\0"] != nil, hasZero, "a value under another name")
            return .object(read)
        case .array:
            guard let elements = value.elements else { throw FuzzFinding("an array without elements") }
            var read: [NaiveJSON] = []
            for element in elements { read.append(try Self.value(element, byteCount)) }
            try FuzzFinding.requireEqual(elements.count, read.count, "the elements are miscounted")
            return .array(read)
        case .string:
            guard let string = value.string else { throw FuzzFinding("a string without text") }
            return .string(Array(string.utf8))
        case .number:
            guard let number = value.number else { throw FuzzFinding("a number without text") }
            let text = Array(number.text.utf8)
            try FuzzFinding.requireEqual(number.integer, NaiveInteger.value(of: text), "\(number.text) as an integer")
            try FuzzFinding.requireEqual(JSONNumber(text: number.text), number, "a number is not its own")
            return .number(text)
        case .bool:
            guard let flag = value.bool else { throw FuzzFinding("a truth value without value") }
            return .bool(flag)
        case .null:
            return .null
        }
    }

    private static func checkWriting(_ root: JSONValue, _ expected: NaiveJSON) throws(FuzzFinding) {
        var writer = JSONWriter()
        writer.value(root)
        let written = writer.finish()
        try FuzzFinding.requireEqual(NaiveJSON.read(Array(written.readableBytesView)), expected, "written wrongly")
        guard let again = try? JSONDocument(parsing: written).root else { throw FuzzFinding("written, but not read") }
        var secondWriter = JSONWriter()
        secondWriter.value(again)
        try FuzzFinding.requireEqual(secondWriter.finish(), written, "written differently the second time")
        let canonical = root.canonicalText
        try FuzzFinding.requireEqual(NaiveJSON.read(Array(canonical.utf8)), expected.sorted, "not canonical")
        try FuzzFinding.requireEqual(again.canonicalText, canonical, "another canonical form")
        let own = try? JSONDocument(parsing: ByteBuffer(string: canonical)).root.canonicalText
        try FuzzFinding.requireEqual(own, canonical, "the canonical form has another one")
        // A copied value keeps its escapes; a value written piece by piece is escaped again.
        var pieces = JSONWriter()
        Self.write(root, to: &pieces)
        let rebuilt = Array(pieces.finish().readableBytesView)
        try FuzzFinding.requireEqual(NaiveJSON.read(rebuilt), expected, "written wrongly in pieces")
    }

    private static func write(_ value: JSONValue, to writer: inout JSONWriter) {
        if let members = value.members {
            writer.beginObject()
            for member in members {
                writer.key(member.key)
                self.write(member.value, to: &writer)
            }
            writer.endObject()
        } else if let elements = value.elements {
            writer.beginArray()
            for element in elements { self.write(element, to: &writer) }
            writer.endArray()
        } else if let string = value.string {
            writer.string(string)
        } else if let number = value.number {
            writer.number(number)
        } else if let flag = value.bool {
            writer.bool(flag)
        } else {
            writer.null()
        }
    }

    /// Foundation accepts every accepted text, except for numbers that overflow a `Double`.
    private static func checkFoundation(_ input: [UInt8], _ expected: NaiveJSON) throws(FuzzFinding) {
        guard !Self.hasHugeNumber(expected) else { return }
        let isRead = (try? JSONSerialization.jsonObject(with: Data(input), options: .fragmentsAllowed)) != nil
        try FuzzFinding.require(isRead, "Foundation refuses it")
    }

    private static func hasHugeNumber(_ value: NaiveJSON) -> Bool {
        switch value {
        case .object(let members): members.contains { Self.hasHugeNumber($0.value) }
        case .array(let elements): elements.contains { Self.hasHugeNumber($0) }
        case .number(let text): Double(String(decoding: text, as: UTF8.self)).map(\.isInfinite) ?? true
        case .string, .bool, .null: false
        }
    }

    /// Tighter limits add refusals at no later offset, and don't change other refusals.
    private static func checkTightLimits(_ input: [UInt8], default refusal: JSONParseError?) throws(FuzzFinding) {
        guard let tight = Self.refusal(of: ByteBuffer(bytes: input), JSONLimits(maxDepth: 3, maxMembers: 6)) else {
            try FuzzFinding.require(refusal == nil, "tighter limits accept what is refused otherwise")
            return
        }
        switch tight.code {
        case .tooDeep, .tooManyMembers:
            let end = refusal?.offset ?? input.count
            try FuzzFinding.require(tight.offset <= end, "a limit is met behind another fault: \(tight)")
        case .malformed, .duplicateKey:
            try FuzzFinding.requireEqual(tight, refusal, "the fault depends on the limits")
        }
    }

    /// The position of the text in its buffer makes no difference.
    private static func checkPlaceInBuffer(_ input: [UInt8], refusal: JSONParseError?) throws(FuzzFinding) {
        var window = ByteBuffer(bytes: Array("{}".utf8) + input + Array("]".utf8))
        window.moveReaderIndex(forwardBy: 2)
        window.moveWriterIndex(to: window.writerIndex - 1)
        try FuzzFinding.requireEqual(Self.refusal(of: window), refusal, "read otherwise inside of a larger buffer")
        guard let slice = window.readSlice(length: input.count) else { throw FuzzFinding("the buffer is too short") }
        try FuzzFinding.requireEqual(Self.refusal(of: slice), refusal, "read otherwise as a part of a buffer")
    }

    private static func refusal(of text: ByteBuffer, _ limits: JSONLimits = JSONLimits()) -> JSONParseError? {
        do {
            _ = try JSONDocument(parsing: text, limits: limits)
            return nil
        } catch {
            return error
        }
    }
}
