import NIOCore

/// The end of a message's body (RFC 9112, section 6.3).
enum HTTPBodyFraming: Equatable {
    case none
    /// The body has this many bytes, at least one.
    case length(Int)
    case chunked
    /// The body ends with the connection. Only in responses.
    case untilClose

    /// True unless the body is known to have at most so many bytes.
    func mayExceed(_ limit: Int) -> Bool {
        if case .length(let length) = self { length > limit } else { true }
    }
}

/// Reads one body from a connection's bytes, and removes its transfer coding.
///
/// It leaves the bytes after the body. The server answers before it reads the next request, and the client closes a
/// connection with unrequested bytes.
struct HTTPBodyReader {
    enum Step: Equatable {
        case incomplete
        case complete
        /// The data, or the framing around it, exceeds its limit.
        case tooLarge
        case malformed
    }

    private enum Framing {
        case length(remaining: Int)
        case chunked(ChunkReader)
        case untilClose(allowed: Int)
    }

    private var framing: Framing
    private(set) var body = ByteBuffer()

    init() {
        self.framing = .length(remaining: 0)
    }

    /// The caller has checked a length against the limit. The overhead is the framing of a chunked body.
    init(framing: HTTPBodyFraming, maxBodyBytes: Int, maxOverheadBytes: Int) {
        switch framing {
        case .none:
            self.framing = .length(remaining: 0)
        case .length(let length):
            self.framing = .length(remaining: length)
        case .chunked:
            self.framing = .chunked(ChunkReader(maxBodyBytes: maxBodyBytes, maxOverheadBytes: maxOverheadBytes))
        case .untilClose:
            self.framing = .untilClose(allowed: maxBodyBytes)
        }
    }

    mutating func read(from bytes: inout ByteBuffer) -> Step {
        switch self.framing {
        case .length(let remaining):
            guard let data = bytes.readSlice(length: min(remaining, bytes.readableBytes)) else { return .malformed }
            self.body.gather(data)
            self.framing = .length(remaining: remaining - data.readableBytes)
            return data.readableBytes == remaining ? .complete : .incomplete
        case .chunked(var reader):
            let step = reader.read(from: &bytes, into: &self.body)
            self.framing = .chunked(reader)
            return step
        case .untilClose(let allowed):
            guard bytes.readableBytes <= allowed else { return .tooLarge }
            self.framing = .untilClose(allowed: allowed - bytes.readableBytes)
            self.body.gather(bytes)
            bytes.moveReaderIndex(to: bytes.writerIndex)
            return .incomplete
        }
    }
}

extension ByteBuffer {
    /// Appends a piece. An empty buffer takes over the piece, which mostly saves the copy.
    mutating func gather(_ bytes: ByteBuffer) {
        if self.readableBytes == 0 {
            self = bytes
        } else {
            self.writeImmutableBuffer(bytes)
        }
    }

    mutating func writeBytes(_ bytes: Span<UInt8>) {
        // Called unsafe because the raw bytes of other types may have gaps that were never set.
        unsafe self.writeBytes(bytes.bytes)
    }
}

extension HTTPBodyReader {
    /// Reads a chunked body (RFC 9112, section 7.1). It extracts the data, bounds data and framing, and drops the
    /// trailer.
    ///
    /// It is strict: a line ends in CR LF, a size has only hexadecimal digits, an extension starts right after it, and
    /// a trailer has only well-formed field lines. Anything else could be read in two ways.
    struct ChunkReader {
        private enum State {
            /// The digits of a chunk's size. Next: `sizeExtension`, `sizeEnd`.
            case size(digits: Int)
            /// The text after a semicolon in the size's line. Next: `sizeEnd`.
            case sizeExtension
            /// The line feed after a size. Next: `data`, `trailerStart`.
            case sizeEnd
            /// A chunk's data. Next: `dataReturn`.
            case data
            /// The carriage return after a chunk's data. Next: `dataEnd`.
            case dataReturn
            /// The line feed after a chunk's data. Next: `size`.
            case dataEnd
            /// The first byte of a line after the last chunk. Next: `trailerName`, `end`.
            case trailerStart
            /// The name of a trailer field. Next: `trailerValue`.
            case trailerName
            /// The value of a trailer field. Next: `trailerEnd`.
            case trailerValue
            /// The line feed after a trailer field. Next: `trailerStart`.
            case trailerEnd
            /// The line feed of the empty line. Next: none.
            case end
        }

        /// The data of all chunks.
        private let maxBodyBytes: Int
        /// Everything else: sizes, extensions, line ends and trailers.
        private let maxOverheadBytes: Int
        private var state = State.size(digits: 0)
        private var chunkBytes = 0
        private var overheadBytes = 0

        init(maxBodyBytes: Int, maxOverheadBytes: Int) {
            self.maxBodyBytes = maxBodyBytes
            self.maxOverheadBytes = maxOverheadBytes
        }

        mutating func read(from bytes: inout ByteBuffer, into body: inout ByteBuffer) -> HTTPBodyReader.Step {
            while bytes.readableBytes > 0 {
                if case .data = self.state {
                    guard let data = bytes.readSlice(length: min(self.chunkBytes, bytes.readableBytes)) else { break }
                    self.chunkBytes -= data.readableBytes
                    body.gather(data)
                    if self.chunkBytes == 0 { self.state = .dataReturn }
                    continue
                }
                guard let byte = bytes.readInteger(as: UInt8.self) else { break }
                self.overheadBytes += 1
                if self.overheadBytes > self.maxOverheadBytes { return .tooLarge }
                let step = self.frame(byte, bodyBytes: body.readableBytes)
                if step != .incomplete { return step }
            }
            return .incomplete
        }

        private mutating func frame(_ byte: UInt8, bodyBytes: Int) -> HTTPBodyReader.Step {
            switch self.state {
            case .size(let digits):
                return self.size(byte, digits: digits, bodyBytes: bodyBytes)
            case .sizeExtension where byte == HTTPGrammar.carriageReturn:
                self.state = .sizeEnd
            case .sizeExtension where HTTPGrammar.isText(byte):
                break
            case .sizeEnd where byte == HTTPGrammar.lineFeed:
                self.state = self.chunkBytes == 0 ? .trailerStart : .data
            case .dataReturn where byte == HTTPGrammar.carriageReturn:
                self.state = .dataEnd
            case .dataEnd where byte == HTTPGrammar.lineFeed:
                self.state = .size(digits: 0)
            case .trailerStart where byte == HTTPGrammar.carriageReturn:
                self.state = .end
            case .trailerStart where HTTPGrammar.isToken(byte):
                self.state = .trailerName
            case .trailerName where byte == UInt8(ascii: ":"):
                self.state = .trailerValue
            case .trailerName where HTTPGrammar.isToken(byte):
                break
            case .trailerValue where byte == HTTPGrammar.carriageReturn:
                self.state = .trailerEnd
            case .trailerValue where HTTPGrammar.isText(byte):
                break
            case .trailerEnd where byte == HTTPGrammar.lineFeed:
                self.state = .trailerStart
            case .end where byte == HTTPGrammar.lineFeed:
                return .complete
            case .sizeExtension, .sizeEnd, .data, .dataReturn, .dataEnd, .trailerStart, .trailerName, .trailerValue,
                .trailerEnd, .end:
                return .malformed
            }
            return .incomplete
        }

        private mutating func size(_ byte: UInt8, digits: Int, bodyBytes: Int) -> HTTPBodyReader.Step {
            let digit: Int
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = Int(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = Int(byte - UInt8(ascii: "a")) + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = Int(byte - UInt8(ascii: "A")) + 10
            case HTTPGrammar.carriageReturn where digits > 0:
                self.state = .sizeEnd
                return .incomplete
            case UInt8(ascii: ";") where digits > 0:
                self.state = .sizeExtension
                return .incomplete
            default:
                return .malformed
            }
            // Checked after each digit, so the size can't overflow.
            self.chunkBytes = self.chunkBytes * 16 + digit
            if self.chunkBytes > self.maxBodyBytes - bodyBytes { return .tooLarge }
            self.state = .size(digits: digits + 1)
            return .incomplete
        }
    }
}
