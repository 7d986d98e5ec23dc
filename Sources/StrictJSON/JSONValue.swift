import NIOCore

/// A view of one value of a document. It is cheap to copy, and keeps the whole document alive.
package struct JSONValue: Sendable {
    /// The kinds of values (RFC 8259, section 3).
    package enum Kind: Sendable {
        case object
        case array
        case string
        case number
        case bool
        case null
    }

    let tape: JSONTape
    let index: Int

    package var kind: Kind { self.tape.nodes[self.index].kind }

    /// The unescaped text; nil unless the value is a string.
    ///
    /// Created on each call.
    package var string: String? {
        guard self.kind == .string else { return nil }
        return self.tape.string(at: self.index)
    }

    /// The unescaped text's length in bytes of UTF-8; nil unless the value is a string.
    package var stringByteCount: Int? {
        guard self.kind == .string else { return nil }
        return self.tape.byteCount(at: self.index)
    }

    package var number: JSONNumber? {
        let node = self.tape.nodes[self.index]
        guard node.kind == .number else { return nil }
        return JSONNumber(checked: self.tape.rawText(of: node))
    }

    package var bool: Bool? {
        let node = self.tape.nodes[self.index]
        guard node.kind == .bool else { return nil }
        return node.flag
    }

    package var isNull: Bool { self.kind == .null }

    /// The members in the order of the text; nil unless the value is an object.
    package var members: JSONMembers? {
        guard self.kind == .object else { return nil }
        return JSONMembers(tape: self.tape, object: self.index)
    }

    /// The elements; nil unless the value is an array.
    package var elements: JSONElements? {
        guard self.kind == .array else { return nil }
        return JSONElements(tape: self.tape, array: self.index)
    }

    /// The offset of the value's first byte from the start of the text; for a string, of its opening quote.
    package var offset: Int {
        let node = self.tape.nodes[self.index]
        return node.kind == .string ? Int(node.start) - 1 : Int(node.start)
    }

    /// The value of the member with this name; nil if there is none, or the value is not an object.
    ///
    /// Names are compared byte by byte in place, one after the other.
    package subscript(key: String) -> JSONValue? {
        let tape = self.tape
        guard tape.nodes[self.index].kind == .object else { return nil }
        let bytes = tape.bytes
        let text = bytes.readableBytesUInt8Span
        let end = Int(tape.nodes[self.index].end)
        var name = self.index + 1
        while name < end {
            if JSONText.areEqual(tape.nodes[name], key, in: text) {
                return JSONValue(tape: tape, index: name + 1)
            }
            name = Int(tape.nodes[name + 1].end)
        }
        return nil
    }
}

/// The members of an object in the order of the text: a sequence that is its own iterator.
package struct JSONMembers: Sequence, IteratorProtocol, Sendable {
    /// The number of remaining members.
    package private(set) var count: Int
    private let tape: JSONTape
    private var key: Int
    private let end: Int

    fileprivate init(tape: JSONTape, object: Int) {
        self.tape = tape
        self.count = Int(tape.nodes[object].extent)
        self.key = object + 1
        self.end = Int(tape.nodes[object].end)
    }

    package var underestimatedCount: Int { self.count }

    package mutating func next() -> JSONMember? {
        guard self.key < self.end else { return nil }
        let value = JSONValue(tape: self.tape, index: self.key + 1)
        self.key = Int(self.tape.nodes[self.key + 1].end)
        self.count -= 1
        return JSONMember(value: value)
    }
}

/// One member of an object.
package struct JSONMember: Sendable {
    package let value: JSONValue

    /// The name, unescaped. Created on each call.
    package var key: String {
        self.value.tape.string(at: self.value.index - 1)
    }

    /// The name's length in bytes of UTF-8, unescaped.
    package var keyByteCount: Int {
        self.value.tape.byteCount(at: self.value.index - 1)
    }

    /// Compares the name in place, without creating a string and without Unicode normalisation.
    package func keyEquals(_ key: String) -> Bool {
        self.value.tape.string(at: self.value.index - 1, equals: key)
    }

    /// Finds the name among others, without creating a string. Returns its place, or `nil` if it is none of them.
    package func keyPlace(in names: JSONNames) -> Int? {
        names.place(of: self.value.tape.nodes[self.value.index - 1], in: self.value.tape)
    }
}

/// The names that the members of an object may have.
package struct JSONNames: Sendable {
    /// The bytes of all names, one name behind another.
    private let bytes: [UInt8]
    /// The end of each name in ``bytes``.
    private let ends: [Int]

    package init(_ names: [String]) {
        self.bytes = names.flatMap(\.utf8)
        var end = 0
        self.ends = names.map { name in
            end += name.utf8.count
            return end
        }
    }

    fileprivate func place(of node: JSONNode, in tape: JSONTape) -> Int? {
        let bytes = tape.bytes
        if node.flag {
            let name = JSONText.unescaped(node, in: bytes.readableBytesUInt8Span)
            return self.place(of: name.span)
        }
        let start = Int(node.start)
        return self.place(of: bytes.readableBytesUInt8Span.extracting(start..<start + Int(node.extent)))
    }

    private func place(of name: Span<UInt8>) -> Int? {
        var start = 0
        for place in self.ends.indices {
            let end = self.ends[place]
            if end - start == name.count, self.hasBytes(of: name, at: start) { return place }
            start = end
        }
        return nil
    }

    private func hasBytes(of name: Span<UInt8>, at start: Int) -> Bool {
        for index in name.indices where self.bytes[start + index] != name[index] { return false }
        return true
    }
}

/// The elements of an array: a sequence that is its own iterator.
package struct JSONElements: Sequence, IteratorProtocol, Sendable {
    /// The number of remaining elements.
    package private(set) var count: Int
    private let tape: JSONTape
    private var element: Int
    private let end: Int

    fileprivate init(tape: JSONTape, array: Int) {
        self.tape = tape
        self.count = Int(tape.nodes[array].extent)
        self.element = array + 1
        self.end = Int(tape.nodes[array].end)
    }

    package var underestimatedCount: Int { self.count }

    package mutating func next() -> JSONValue? {
        guard self.element < self.end else { return nil }
        let value = JSONValue(tape: self.tape, index: self.element)
        self.element = Int(self.tape.nodes[self.element].end)
        self.count -= 1
        return value
    }
}

extension JSONValue {
    /// The value as JSON without blanks. Members are sorted by the Unicode code points of their names.
    ///
    /// A value of more than 32 KiB, which exceeds any message of FCM, keeps its order: sorting long names that are
    /// nearly equal takes long. Numbers keep their spelling, `null` stays, and escapes are those of ``JSONWriter``.
    package var canonicalText: String {
        var bytes = UniqueBytes()
        let nodes = self.tape.nodes
        let last = nodes[Int(nodes[self.index].end) - 1]
        let byteCount = Int(last.start) + Int(last.extent) - Int(nodes[self.index].start)
        self.tape.write(self.index, to: &bytes, isCanonical: byteCount <= 32 * 1024)
        return String(buffer: bytes.buffer)
    }
}

extension JSONTape {
    private enum Step {
        case element(Int, isFirst: Bool)
        case member(Int, isFirst: Bool)
        case close(UInt8)
    }

    /// Writes a value as JSON without blanks.
    func write(_ index: Int, to output: inout UniqueBytes, isCanonical: Bool) {
        // The pending output, next piece last. A stack of our own, because the input's depth must not become the call
        // stack's.
        var pending = [Step.element(index, isFirst: true)]
        while let step = pending.popLast() {
            let node: Int
            switch step {
            case .close(let bracket):
                output.append(bracket)
                continue
            case .element(let element, let isFirst):
                if !isFirst { output.append(UInt8(ascii: ",")) }
                node = element
            case .member(let key, let isFirst):
                if !isFirst { output.append(UInt8(ascii: ",")) }
                self.writeScalar(key, to: &output, isCanonical: isCanonical)
                output.append(UInt8(ascii: ":"))
                node = key + 1
            }
            switch self.nodes[node].kind {
            case .object:
                output.append(UInt8(ascii: "{"))
                pending.append(.close(UInt8(ascii: "}")))
                let keys = isCanonical ? self.sortedKeys(of: node) : self.items(of: node)
                for (position, key) in keys.enumerated().reversed() {
                    pending.append(.member(key, isFirst: position == 0))
                }
            case .array:
                output.append(UInt8(ascii: "["))
                pending.append(.close(UInt8(ascii: "]")))
                for (position, element) in self.items(of: node).enumerated().reversed() {
                    pending.append(.element(element, isFirst: position == 0))
                }
            case .string, .number, .bool, .null:
                self.writeScalar(node, to: &output, isCanonical: isCanonical)
            }
        }
    }

    private func writeScalar(_ index: Int, to output: inout UniqueBytes, isCanonical: Bool) {
        let node = self.nodes[index]
        if node.kind == .string {
            output.append(UInt8(ascii: "\""))
            if node.flag, isCanonical {
                // The text may escape more characters than the writer does, or spell an escape in another way.
                JSONStringEncoder.write(self.string(at: index), to: &output)
            } else {
                self.writeBytes(of: node, to: &output)
            }
            output.append(UInt8(ascii: "\""))
        } else {
            self.writeBytes(of: node, to: &output)
        }
    }

    private func writeBytes(of node: JSONNode, to output: inout UniqueBytes) {
        let start = Int(node.start)
        let bytes = self.bytes
        output.append(bytes.readableBytesUInt8Span.extracting(start..<(start + Int(node.extent))))
    }

    /// The nodes of an array's elements, or of an object's names.
    private func items(of container: Int) -> [Int] {
        var items: [Int] = []
        items.reserveCapacity(Int(self.nodes[container].extent))
        // A name's value follows it.
        let valueOffset = self.nodes[container].kind == .object ? 1 : 0
        var item = container + 1
        while item < Int(self.nodes[container].end) {
            items.append(item)
            item = Int(self.nodes[item + valueOffset].end)
        }
        return items
    }

    private func sortedKeys(of object: Int) -> [Int] {
        // UTF-8 sorts like its code points. `String` would compare normalised forms.
        self.items(of: object)
            .map { (index: $0, name: self.string(at: $0)) }
            .sorted { Self.precedes($0.name.utf8.span, $1.name.utf8.span) }
            .map(\.index)
    }

    /// Compares byte by byte, eight at a time: names may be long and similar.
    private static func precedes(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        let count = min(left.count, right.count)
        var position = 0
        while position &+ 8 <= count {
            let (leftWord, rightWord) = (left.word(at: position), right.word(at: position))
            guard leftWord == rightWord else { return leftWord.byteSwapped < rightWord.byteSwapped }
            position &+= 8
        }
        while position < count {
            guard left[position] == right[position] else { return left[position] < right[position] }
            position &+= 1
        }
        return left.count < right.count
    }
}
