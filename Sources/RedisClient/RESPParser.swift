package import NIOCore

/// A value of Redis' serialisation protocol, in version 2 or 3.
package indirect enum RESPValue: Sendable, Hashable {
    /// A simple string, such as a status.
    case status(String)
    /// The server's reason to refuse a command. It begins with a word in capitals, such as `NOSCRIPT`.
    case error(String)
    case integer(Int64)
    /// Bytes: a bulk string, or a verbatim string without its format.
    case bytes([UInt8])
    case null
    case boolean(Bool)
    case double(Double)
    /// A big number, as its digits.
    case bigNumber(String)
    /// An array, or a set in the server's order.
    case array([RESPValue])
    /// A map: alternating keys and values.
    case map([RESPValue])
    /// A message that the server sends without a request.
    case push([RESPValue])

    /// The text of a status, or of bytes in UTF-8.
    package var text: String? {
        switch self {
        case .status(let text): text
        case .bytes(let bytes): String(validating: bytes, as: UTF8.self)
        case .error, .integer, .null, .boolean, .double, .bigNumber, .array, .map, .push: nil
        }
    }

    /// The value of a key, in a map or in an array of alternating keys and values, as in version 2.
    package subscript(key: String) -> RESPValue? {
        switch self {
        case .map(let entries), .array(let entries):
            for index in stride(from: 0, to: entries.count - 1, by: 2) where entries[index].text == key {
                return entries[index + 1]
            }
            return nil
        case .status, .error, .integer, .bytes, .null, .boolean, .double, .bigNumber, .push:
            return nil
        }
    }

    /// The first word of an error, which identifies its kind. Empty for all other values.
    package var errorCode: Substring {
        guard case .error(let text) = self else { return "" }
        return text.prefix { $0 != " " }
    }
}

/// The reason why the received bytes are not a valid reply. Their connection can't be used any more.
package enum RESPError: Error, Sendable, Hashable {
    case malformed
    case tooLarge
}

/// Parses replies from a connection's bytes, in pieces of any size (Redis serialisation protocol specification,
/// versions 2 and 3, without streamed strings and aggregates).
///
/// Announced lengths reserve no memory. Memory grows with the bytes received, up to the bounds.
package struct RESPParser: Sendable {
    /// The bounds of one reply.
    package struct Limits: Sendable {
        package var depth: Int
        /// For one string, in bytes.
        package var stringBytes: Int
        /// For a line, in bytes: a status, an error, a number or a length.
        package var lineBytes: Int
        /// For all aggregates together.
        package var elements: Int
        /// For all strings together.
        package var replyBytes: Int

        package init(
            depth: Int = 8,
            stringBytes: Int = 1 << 20,
            lineBytes: Int = 4_096,
            elements: Int = 65_536,
            replyBytes: Int = 4 << 20
        ) {
            self.depth = depth
            self.stringBytes = stringBytes
            self.lineBytes = lineBytes
            self.elements = elements
            self.replyBytes = replyBytes
        }
    }

    private enum Kind {
        case array
        case map
        case push
        /// Precedes a value and adds unrequested information about it.
        case attribute
    }

    private struct Aggregate {
        let kind: Kind
        var missing: Int
        var elements: [RESPValue] = []
    }

    private struct PendingString {
        let length: Int
        let isError: Bool
        let hasFormat: Bool
    }

    private enum Token {
        case value(RESPValue)
        case aggregate(Kind, count: Int)
        case string(PendingString)
    }

    private static let carriageReturn = UInt8(ascii: "\r")
    private static let lineFeed = UInt8(ascii: "\n")
    /// Both, highest byte first.
    private static let lineEnd: UInt16 = 0x0D0A
    private static let formatBytes = 4

    private let limits: Limits
    /// The incomplete aggregates, outermost first.
    private var open: [Aggregate] = []
    /// A string whose length has been read.
    private var string: PendingString?
    /// The number of scanned bytes of an incomplete line. They contain no line end.
    private var scannedBytes = 0
    private var elements = 0
    private var replyBytes = 0

    package init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// True if the bytes read end with a complete reply.
    package var isBetweenReplies: Bool {
        self.open.isEmpty && self.string == nil && self.scannedBytes == 0 && self.elements == 0
    }

    /// Reads the next reply from the bytes. Returns nil until it is complete. Nothing may be read after an error.
    package mutating func next(from bytes: inout ByteBuffer) throws(RESPError) -> RESPValue? {
        while true {
            let value: RESPValue
            if let string = self.string {
                guard let read = try self.read(string, from: &bytes) else { return nil }
                self.string = nil
                value = read
            } else {
                guard var line = try self.line(from: &bytes) else { return nil }
                switch try self.token(from: &line) {
                case .string(let string):
                    self.string = string
                    continue
                case .aggregate(let kind, let count):
                    guard count == 0 else {
                        guard self.open.count < self.limits.depth else { throw .tooLarge }
                        self.open.append(Aggregate(kind: kind, missing: count))
                        continue
                    }
                    guard let empty = Self.value(kind, []) else { continue }
                    value = empty
                case .value(let read):
                    value = read
                }
            }
            if let whole = self.complete(value) { return whole }
        }
    }

    /// Adds a value to its aggregate. Returns the reply if it is complete.
    private mutating func complete(_ value: RESPValue) -> RESPValue? {
        var value = value
        while var aggregate = self.open.popLast() {
            aggregate.elements.append(value)
            aggregate.missing -= 1
            guard aggregate.missing == 0 else {
                self.open.append(aggregate)
                return nil
            }
            guard let next = Self.value(aggregate.kind, aggregate.elements) else { return nil }
            value = next
        }
        (self.elements, self.replyBytes) = (0, 0)
        return value
    }

    private static func value(_ kind: Kind, _ elements: [RESPValue]) -> RESPValue? {
        switch kind {
        case .array: .array(elements)
        case .map: .map(elements)
        case .push: .push(elements)
        case .attribute: nil
        }
    }

    // MARK: Bytes

    /// A line without its end. Bytes that have been scanned are not scanned again when more arrive.
    private mutating func line(from bytes: inout ByteBuffer) throws(RESPError) -> ByteBuffer? {
        let view = bytes.readableBytesView
        let end = view[(view.startIndex + self.scannedBytes)...]
            .firstIndex { $0 == Self.carriageReturn || $0 == Self.lineFeed }
        let length = (end ?? view.endIndex) - view.startIndex
        guard length <= self.limits.lineBytes else { throw .tooLarge }
        self.scannedBytes = length
        guard let end else { return nil }
        guard view[end] == Self.carriageReturn else { throw .malformed }
        guard end + 1 < view.endIndex else { return nil }
        guard view[end + 1] == Self.lineFeed else { throw .malformed }
        self.scannedBytes = 0
        let line = bytes.readSlice(length: length)
        bytes.moveReaderIndex(forwardBy: 2)
        return line
    }

    private mutating func read(_ string: PendingString, from bytes: inout ByteBuffer) throws(RESPError) -> RESPValue? {
        guard bytes.readableBytes >= string.length + 2, let content = bytes.readBytes(length: string.length),
            let end = bytes.readInteger(as: UInt16.self)
        else { return nil }
        guard end == Self.lineEnd else { throw .malformed }
        if string.isError { return .error(String(decoding: content, as: UTF8.self)) }
        guard string.hasFormat else { return .bytes(content) }
        // Three bytes of format and a colon.
        guard content.count >= Self.formatBytes,
            content[Self.formatBytes - 1] == UInt8(ascii: ":")
        else { throw .malformed }
        return .bytes(Array(content.dropFirst(Self.formatBytes)))
    }

    private mutating func token(from line: inout ByteBuffer) throws(RESPError) -> Token {
        guard let type = line.readInteger(as: UInt8.self) else { throw .malformed }
        switch type {
        case UInt8(ascii: "+"):
            return .value(.status(String(buffer: line)))
        case UInt8(ascii: "-"):
            return .value(.error(String(buffer: line)))
        case UInt8(ascii: ":"):
            return .value(.integer(try Self.integer(line)))
        case UInt8(ascii: "$"):
            return try self.string(line)
        case UInt8(ascii: "!"):
            return try self.string(line, isError: true)
        case UInt8(ascii: "="):
            return try self.string(line, hasFormat: true)
        case UInt8(ascii: "*"):
            return try self.aggregate(.array, line)
        case UInt8(ascii: "~"):
            return try self.aggregate(.array, line, mayBeNull: false)
        case UInt8(ascii: "%"):
            return try self.aggregate(.map, line, mayBeNull: false)
        case UInt8(ascii: "|"):
            return try self.aggregate(.attribute, line, mayBeNull: false)
        case UInt8(ascii: ">"):
            // Allowed only between replies.
            guard self.open.isEmpty else { throw .malformed }
            return try self.aggregate(.push, line, mayBeNull: false)
        case UInt8(ascii: "_"):
            guard line.readableBytes == 0 else { throw .malformed }
            return .value(.null)
        case UInt8(ascii: "#"):
            switch String(buffer: line) {
            case "t": return .value(.boolean(true))
            case "f": return .value(.boolean(false))
            default: throw .malformed
            }
        case UInt8(ascii: ","):
            return .value(.double(try Self.double(line)))
        case UInt8(ascii: "("):
            return .value(.bigNumber(try Self.digits(line)))
        default:
            throw .malformed
        }
    }

    private mutating func string(
        _ line: ByteBuffer,
        isError: Bool = false,
        hasFormat: Bool = false
    ) throws(RESPError) -> Token {
        let length = try Self.integer(line)
        if length == -1, !isError, !hasFormat { return .value(.null) }
        guard length >= 0 else { throw .malformed }
        guard length <= Int64(self.limits.stringBytes) else { throw .tooLarge }
        self.replyBytes += Int(length)
        guard self.replyBytes <= self.limits.replyBytes else { throw .tooLarge }
        return .string(PendingString(length: Int(length), isError: isError, hasFormat: hasFormat))
    }

    private mutating func aggregate(
        _ kind: Kind,
        _ line: ByteBuffer,
        mayBeNull: Bool = true
    ) throws(RESPError) -> Token {
        let count = try Self.integer(line)
        if count == -1, mayBeNull { return .value(.null) }
        guard count >= 0 else { throw .malformed }
        guard count <= Int64(self.limits.elements) else { throw .tooLarge }
        let isPaired =
            switch kind {
            case .map, .attribute: true
            case .array, .push: false
            }
        let elements = isPaired ? 2 * Int(count) : Int(count)
        // Each aggregate counts as one more, so that a run of empty ones is bounded too.
        self.elements += elements + 1
        guard self.elements <= self.limits.elements else { throw .tooLarge }
        return .aggregate(kind, count: elements)
    }

    /// An optional sign and digits, nothing else.
    private static func digits(_ line: ByteBuffer) throws(RESPError) -> String {
        let text = String(buffer: line)
        let digits =
            text.utf8.first == UInt8(ascii: "-") || text.utf8.first == UInt8(ascii: "+")
            ? text.utf8.dropFirst() : text.utf8[...]
        guard !digits.isEmpty, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            throw .malformed
        }
        return text
    }

    private static func integer(_ line: ByteBuffer) throws(RESPError) -> Int64 {
        guard let number = Int64(String(buffer: line)) else { throw .malformed }
        return number
    }

    private static func double(_ line: ByteBuffer) throws(RESPError) -> Double {
        let text = String(buffer: line)
        switch text {
        case "inf": return .infinity
        case "-inf": return -.infinity
        case "nan", "-nan": return .nan
        default: break
        }
        // The number parsers of Foundation and Swift accept more, such as hexadecimal digits.
        let isDecimal = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "e"), UInt8(ascii: "E"):
                true
            default: false
            }
        }
        guard isDecimal, let number = Double(text) else { throw .malformed }
        return number
    }
}
