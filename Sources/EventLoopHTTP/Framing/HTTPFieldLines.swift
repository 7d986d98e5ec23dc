package import HTTPTypes
import NIOCore

/// The name of a field, prepared once for look-ups and for writing.
package struct HTTPFieldKey: Sendable {
    /// The name in lower case.
    let bytes: [UInt8]
    /// See ``HTTPFieldLines/bit(first:count:)``.
    let bit: UInt64
    /// The name as it is written, with the colon and the space after it.
    let lineStart: [UInt8]
    /// True if the field frames a message or its connection, or is `Date`. The writers of messages set these
    /// themselves.
    let framesMessage: Bool

    package init(_ name: HTTPField.Name) {
        self.bytes = Array(name.canonicalName.utf8)
        self.bit = HTTPFieldLines.bit(first: self.bytes[0], count: self.bytes.count)
        self.lineStart = Array("\(name.rawName): ".utf8)
        self.framesMessage =
            switch name.canonicalName {
            case "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "trailer", "te",
                "date":
                true
            default: false
            }
    }

    static let connection = HTTPFieldKey(.connection)
    static let contentLength = HTTPFieldKey(.contentLength)
    static let expect = HTTPFieldKey(.expect)
    static let host = HTTPFieldKey(.host)
    static let transferEncoding = HTTPFieldKey(.transferEncoding)
}

extension HTTPField.Name {
    /// A name that is a constant in the source code. It must be a token (RFC 9110, section 5.1).
    package init(constant name: StaticString) {
        guard let parsed = HTTPField.Name(name.description) else {
            preconditionFailure("\(name) is not a field name")
        }
        self = parsed
    }

    /// `Host`, which HTTPTypes represents as the authority.
    static let host = HTTPField.Name(constant: "Host")
}

/// The field lines of a message's head, in their original bytes.
///
/// Most fields of most messages are never read. Only a field that is read becomes a string.
package struct HTTPFieldLines: Sendable {
    /// The position of a field in the head.
    struct Line {
        private let nameStart: UInt16
        private let nameEnd: UInt16
        private let valueStart: UInt16
        private let valueEnd: UInt16

        /// A line. All offsets in a head fit 16 bits.
        init(name: Range<Int>, value: Range<Int>) {
            self.nameStart = UInt16(name.lowerBound)
            self.nameEnd = UInt16(name.upperBound)
            self.valueStart = UInt16(value.lowerBound)
            self.valueEnd = UInt16(value.upperBound)
        }

        var nameCount: Int { Int(self.nameEnd) - Int(self.nameStart) }
        var name: Range<Int> { Int(self.nameStart)..<Int(self.nameEnd) }
        var value: Range<Int> { Int(self.valueStart)..<Int(self.valueEnd) }
    }

    /// The length in bytes of the longest head whose offsets fit a ``Line``.
    static let maxHeadBytes = Int(UInt16.max)

    private var head = ByteBuffer()
    private var lines: [Line] = []
    /// The bits of all names. Most look-ups are for a field that is missing, and end here.
    private var bits: UInt64 = 0

    /// One of 64 bits, by a name's first letter and length.
    fileprivate static func bit(first: UInt8, count: Int) -> UInt64 { 1 &<< UInt64(Int(first | 0x20) &* 5 &+ count) }

    /// Reads the lines of a head, from an offset to the empty line that ends it. Returns `nil` if one is malformed.
    ///
    /// A line is a token, a colon, text and CR LF. White space around the text is not part of it (RFC 9112, section 5).
    /// Folded lines, white space before the colon, control characters and other line ends are malformed.
    ///
    /// A function and not an initialiser: a failable initialiser copies its value.
    static func parse(_ head: ByteBuffer, from start: Int) -> HTTPFieldLines? {
        guard head.readableBytes <= Self.maxHeadBytes else { return nil }
        var lines: [Line] = []
        lines.reserveCapacity(12)
        var bits: UInt64 = 0
        let bytes = head.readableBytesUInt8Span
        var index = start
        while !bytes.endsLine(at: index) {
            guard let line = Self.line(in: bytes, at: &index) else { return nil }
            lines.append(line)
            bits |= Self.bit(first: bytes[line.name.lowerBound], count: line.nameCount)
        }
        guard index + 2 == bytes.count else { return nil }
        return HTTPFieldLines(head: head, lines: lines, bits: bits)
    }

    private static func line(in bytes: Span<UInt8>, at index: inout Int) -> Line? {
        let nameStart = index
        while index < bytes.count, HTTPGrammar.isToken(bytes[index]) { index += 1 }
        let nameEnd = index
        guard nameEnd > nameStart, index < bytes.count, bytes[index] == UInt8(ascii: ":") else { return nil }
        index += 1
        while index < bytes.count, Self.isBlank(bytes[index]) { index += 1 }
        let valueStart = index
        index = HTTPGrammar.endOfText(in: bytes, from: index)
        var valueEnd = index
        while valueEnd > valueStart, Self.isBlank(bytes[valueEnd - 1]) { valueEnd -= 1 }
        guard bytes.endsLine(at: index) else { return nil }
        index += 2
        return Line(name: nameStart..<nameEnd, value: valueStart..<valueEnd)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == HTTPGrammar.space || byte == HTTPGrammar.tab
    }
}

extension HTTPFieldLines {
    /// The lines of fields that were not received, at most ``maxHeadBytes``.
    package init(_ fields: HTTPFields) {
        var head = ByteBuffer()
        for field in fields {
            let byteCount = head.writerIndex + field.name.rawName.utf8.count + field.value.utf8.count
            precondition(byteCount <= Self.maxHeadBytes, "\(byteCount) bytes of fields")
            let nameStart = head.writerIndex
            self.bits |= HTTPFieldKey(field.name).bit
            head.writeString(field.name.rawName)
            let valueStart = head.writerIndex
            head.writeString(field.value)
            self.lines.append(Line(name: nameStart..<valueStart, value: valueStart..<head.writerIndex))
        }
        self.head = head
    }

    /// Starts without lines, and reserves room for a head.
    init(headBytes: Int) {
        self.head.reserveCapacity(headBytes)
        self.lines.reserveCapacity(16)
    }

    /// Adds a line of a valid name and value. Returns false if the head becomes too long.
    mutating func append(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
        let nameStart = self.head.writerIndex
        guard nameStart + name.count + value.count <= Self.maxHeadBytes else { return false }
        self.bits |= Self.bit(first: name[0], count: name.count)
        self.head.writeBytes(name)
        let valueStart = self.head.writerIndex
        self.head.writeBytes(value)
        self.lines.append(Line(name: nameStart..<valueStart, value: valueStart..<self.head.writerIndex))
        return true
    }

    var count: Int { self.lines.count }

    // MARK: Looking up

    /// The value of a field. Values of a repeated field are joined by commas (RFC 9110, section 5.3).
    package subscript(_ key: HTTPFieldKey) -> String? {
        guard self.bits & key.bit != 0 else { return nil }
        var value: String?
        for index in self.lines.indices where self.isNamed(key, index) {
            let text = self.text(self.lines[index].value)
            value = value.map { $0 + ", " + text } ?? text
        }
        return value
    }

    /// The bytes of a field's value. `nil` if the field is missing or repeated.
    package func bytes(of key: HTTPFieldKey) -> [UInt8]? {
        guard case .once(let value) = self.occurrence(of: key) else { return nil }
        return self.head.getBytes(at: self.head.readerIndex + value.lowerBound, length: value.count)
    }

    enum Occurrence {
        case never
        /// Once, with the position of its value in the head.
        case once(Range<Int>)
        case repeatedly
    }

    func occurrence(of key: HTTPFieldKey) -> Occurrence {
        guard self.bits & key.bit != 0 else { return .never }
        var found: Occurrence = .never
        for index in self.lines.indices where self.isNamed(key, index) {
            guard case .never = found else { return .repeatedly }
            found = .once(self.lines[index].value)
        }
        return found
    }

    /// Returns true if any line of a list field contains the given token (RFC 9110, section 5.6.1).
    func lists(_ token: [UInt8], in key: HTTPFieldKey) -> Bool {
        guard self.bits & key.bit != 0 else { return false }
        let bytes = self.head.readableBytesUInt8Span
        for index in self.lines.indices where self.isNamed(key, index) {
            let value = self.lines[index].value
            var start = value.lowerBound
            while start < value.upperBound {
                var end = start
                while end < value.upperBound, bytes[end] != UInt8(ascii: ",") { end += 1 }
                let next = end + 1
                while start < end, Self.isBlank(bytes[start]) { start += 1 }
                while start < end, Self.isBlank(bytes[end - 1]) { end -= 1 }
                if bytes.equalsIgnoringCase(start..<end, token) { return true }
                start = next
            }
        }
        return false
    }

    private func isNamed(_ key: HTTPFieldKey, _ index: Int) -> Bool {
        let line = self.lines[index]
        guard line.nameCount == key.bytes.count else { return false }
        return self.head.readableBytesUInt8Span.equalsIgnoringCase(line.name, key.bytes)
    }

    private func text(_ range: Range<Int>) -> String {
        self.head.getString(at: self.head.readerIndex + range.lowerBound, length: range.count) ?? ""
    }

    // MARK: Translating

    package var fields: HTTPFields {
        var fields = HTTPFields()
        fields.reserveCapacity(self.lines.count)
        for line in self.lines {
            guard let name = HTTPField.Name(self.text(line.name)) else { continue }
            fields.append(HTTPField(name: name, value: self.text(line.value)))
        }
        return fields
    }
}

/// The field lines of a message to be sent, written once and copied into its head.
///
/// Fields that frame the message are left out: the writer of the message sets them itself.
package struct HTTPHeaderLines: Sendable {
    private(set) var bytes: [UInt8] = []

    package init() {
        self.bytes.reserveCapacity(224)
    }

    package init(_ fields: HTTPFields) {
        self.init()
        for field in fields {
            self.append(HTTPFieldKey(field.name), field.value)
        }
    }

    /// A control character in the value is replaced by a space, so that no value can end its line.
    package mutating func append(_ key: HTTPFieldKey, _ value: String) {
        guard !key.framesMessage else { return }
        self.bytes.append(contentsOf: key.lineStart)
        let start = self.bytes.count
        self.bytes.append(contentsOf: value.utf8)
        self.endLine(valueFrom: start)
    }

    package mutating func append(_ key: HTTPFieldKey, _ value: [UInt8]) {
        self.append(key) { $0.append(contentsOf: value) }
    }

    /// Adds a line whose value is appended by a closure.
    package mutating func append(_ key: HTTPFieldKey, _ appendValue: (inout [UInt8]) -> Void) {
        guard !key.framesMessage else { return }
        self.bytes.append(contentsOf: key.lineStart)
        let start = self.bytes.count
        appendValue(&self.bytes)
        self.endLine(valueFrom: start)
    }

    private mutating func endLine(valueFrom start: Int) {
        if !HTTPGrammar.isAllText(self.bytes.span, from: start) {
            for index in start..<self.bytes.count where !HTTPGrammar.isText(self.bytes[index]) {
                self.bytes[index] = HTTPGrammar.space
            }
        }
        self.bytes.append(HTTPGrammar.carriageReturn)
        self.bytes.append(HTTPGrammar.lineFeed)
    }

    func forEachLine(_ body: (_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Void) {
        var start = self.bytes.startIndex
        while let colon = self.bytes[start...].firstIndex(of: UInt8(ascii: ":")),
            let end = self.bytes[colon...].firstIndex(of: HTTPGrammar.carriageReturn)
        {
            // A space follows the colon, and a line feed the carriage return.
            body(self.bytes[start..<colon], self.bytes[(colon + 2)..<end])
            start = end + 2
        }
    }

    package var fields: HTTPFields {
        var fields = HTTPFields()
        self.forEachLine { name, value in
            // Never nil: a line begins with a key's name.
            guard let name = HTTPField.Name(String(decoding: name, as: UTF8.self)) else { return }
            fields.append(HTTPField(name: name, value: String(decoding: value, as: UTF8.self)))
        }
        return fields
    }
}

extension HTTPHeaderLines: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (HTTPField.Name, String)...) {
        self.init()
        for (name, value) in elements {
            self.append(HTTPFieldKey(name), value)
        }
    }
}
