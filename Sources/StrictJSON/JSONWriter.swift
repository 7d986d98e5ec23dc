package import NIOCore

/// Writes one JSON value without blanks. The writer adds commas and colons.
///
/// It writes these escapes: `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, and other control characters below U+0020 as
/// `\u00xx` in lower case. It escapes nothing else, neither `/` nor anything beyond ASCII. Calls that would not make
/// JSON, such as a value in place of a name or an end without a beginning, are programmer errors and stop the process.
/// So does nesting `beginObject` and `beginArray` more than 64 levels deep.
package struct JSONWriter: ~Copyable {
    private enum State {
        /// Nothing was written. Next: `firstKey`, `firstElement`, `complete`.
        case root
        /// An object has begun. Next: `memberValue`, or the state after its end.
        case firstKey
        /// A member is complete. Next: `memberValue`, or the state after the object's end.
        case nextKey
        /// A name was written. Next: `nextKey`, `firstKey`, `firstElement`.
        case memberValue
        /// An array has begun. Next: `nextElement`, `firstKey`, `firstElement`, or the state after its end.
        case firstElement
        /// An element is complete. Next: as for `firstElement`.
        case nextElement
        case complete
    }

    private var bytes: UniqueBytes
    private var state = State.root
    private var depth = 0
    /// One bit for each open level, the innermost lowest. Set for objects.
    private var objects: UInt64 = 0

    package init(reservingCapacity capacity: Int = 256) {
        self.bytes = UniqueBytes(reservingCapacity: capacity)
    }

    package mutating func beginObject() {
        self.begin(UInt8(ascii: "{"), isObject: true)
    }

    package mutating func endObject() {
        precondition(self.state == .firstKey || self.state == .nextKey, "no object can end in state \(self.state)")
        self.end(UInt8(ascii: "}"))
    }

    package mutating func beginArray() {
        self.begin(UInt8(ascii: "["), isObject: false)
    }

    package mutating func endArray() {
        precondition(
            self.state == .firstElement || self.state == .nextElement,
            "no array can end in state \(self.state)"
        )
        self.end(UInt8(ascii: "]"))
    }

    /// Writes a member's name that needs no escape. Its value must follow.
    package mutating func key(_ key: StaticString) {
        assert(!JSONStringEncoder.needsEscape(key.description.utf8.span), "the name \(key) needs an escape")
        if case .nextKey = self.state {
            self.bytes.append(nextName: key)
            self.state = .memberValue
        } else {
            self.beginKey()
            self.bytes.append(key)
            self.endKey()
        }
    }

    /// Writes a member's name. Its value must follow.
    package mutating func key(_ key: String) {
        self.beginKey()
        JSONStringEncoder.write(key, to: &self.bytes)
        self.endKey()
    }

    package mutating func string(_ value: String) {
        self.beginValue()
        self.bytes.append(UInt8(ascii: "\""))
        JSONStringEncoder.write(value, to: &self.bytes)
        self.bytes.append(UInt8(ascii: "\""))
        self.endValue()
    }

    package mutating func integer(_ value: Int) {
        self.beginValue()
        self.bytes.append(decimal: value)
        self.endValue()
    }

    /// Writes a number with its unit as a string, such as `"3600s"`. The unit needs no escape.
    package mutating func string(_ number: Int, unit: StaticString = "") {
        self.beginValue()
        self.bytes.append(UInt8(ascii: "\""))
        self.bytes.append(decimal: number)
        self.bytes.append(unit)
        self.bytes.append(UInt8(ascii: "\""))
        self.endValue()
    }

    package mutating func integer(_ value: some BinaryInteger) {
        self.beginValue()
        self.bytes.append(utf8: String(value))
        self.endValue()
    }

    package mutating func bool(_ value: Bool) {
        self.beginValue()
        self.bytes.append(utf8: value ? "true" : "false")
        self.endValue()
    }

    package mutating func null() {
        self.beginValue()
        self.bytes.append(utf8: "null")
        self.endValue()
    }

    package mutating func number(_ value: JSONNumber) {
        self.beginValue()
        self.bytes.append(utf8: value.text)
        self.endValue()
    }

    /// Writes a value that was read, without blanks. Members keep their order, and numbers and strings their text.
    package mutating func value(_ value: JSONValue) {
        self.beginValue()
        value.tape.write(value.index, to: &self.bytes, isCanonical: false)
        self.endValue()
    }

    /// Writes a value that is JSON already, byte by byte. The writer does not check it.
    package mutating func encoded(_ json: ByteBuffer) {
        self.beginValue()
        self.bytes.append(json.readableBytesUInt8Span)
        self.endValue()
    }

    /// The number of bytes of a list of strings as JSON without blanks, computed without writing the list.
    package static func byteCount(of strings: [String]) -> Int {
        // Brackets and commas around the strings, and quotes around each.
        strings.reduce(2 + max(0, strings.count - 1)) { $0 + 2 + JSONStringEncoder.byteCount(of: $1) }
    }

    /// The whole value.
    package func finish() -> ByteBuffer {
        precondition(self.state == .complete, "the value is not complete but in state \(self.state)")
        return self.bytes.buffer
    }

    private mutating func begin(_ bracket: UInt8, isObject: Bool) {
        precondition(self.depth < 64, "the writer nests at most 64 levels, and \(self.depth) are open")
        self.beginValue()
        self.bytes.append(bracket)
        self.depth &+= 1
        self.objects = self.objects &<< 1 | (isObject ? 1 : 0)
        self.state = isObject ? .firstKey : .firstElement
    }

    private mutating func end(_ bracket: UInt8) {
        self.bytes.append(bracket)
        self.depth &-= 1
        self.objects &>>= 1
        self.endValue()
    }

    @inline(__always)
    private mutating func beginKey() {
        switch self.state {
        case .firstKey:
            self.bytes.append(UInt8(ascii: "\""))
        case .nextKey:
            self.bytes.append(UInt8(ascii: ","))
            self.bytes.append(UInt8(ascii: "\""))
        case .root, .memberValue, .firstElement, .nextElement, .complete:
            preconditionFailure("no name is allowed in state \(self.state)")
        }
    }

    @inline(__always)
    private mutating func endKey() {
        self.bytes.append(UInt8(ascii: "\""))
        self.bytes.append(UInt8(ascii: ":"))
        self.state = .memberValue
    }

    @inline(__always)
    private mutating func beginValue() {
        switch self.state {
        case .root, .memberValue, .firstElement:
            break
        case .nextElement:
            self.bytes.append(UInt8(ascii: ","))
        case .firstKey, .nextKey, .complete:
            preconditionFailure("no value is allowed in state \(self.state)")
        }
    }

    @inline(__always)
    private mutating func endValue() {
        if self.depth == 0 {
            self.state = .complete
        } else {
            self.state = self.objects & 1 == 1 ? .nextKey : .nextElement
        }
    }
}

extension JSONWriter {
    package mutating func member(_ key: StaticString, _ value: String) {
        self.key(key)
        self.string(value)
    }

    package mutating func member(_ key: StaticString, _ value: Int) {
        self.key(key)
        self.integer(value)
    }

    package mutating func member(_ key: StaticString, _ value: Bool) {
        self.key(key)
        self.bool(value)
    }

    package mutating func member(_ key: StaticString, _ values: [String]) {
        self.beginArray(key)
        for value in values { self.string(value) }
        self.endArray()
    }

    package mutating func beginObject(_ key: StaticString) {
        self.key(key)
        self.beginObject()
    }

    package mutating func beginArray(_ key: StaticString) {
        self.key(key)
        self.beginArray()
    }
}
