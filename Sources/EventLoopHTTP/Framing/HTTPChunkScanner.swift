/// Finds where a chunked body ends, and bounds it as it stands on the wire.
///
/// Lenient on purpose: the parser behind it refuses what is malformed, and both have to agree on the last byte.
struct HTTPChunkScanner {
    enum Step: Equatable {
        /// All bytes belong to the body, and more must follow.
        case incomplete
        /// This many of the bytes belong to the body, which is complete.
        case complete(byteCount: Int)
        /// The data, or the framing around it, exceeds its limit.
        case tooLarge
        /// A chunk does not start with its size.
        case malformed
    }

    private enum State {
        /// Reading the digits of a chunk's size. Next: `sizeLine`, `data`, `trailer`.
        case size(digits: Int)
        /// Skipping the rest of the size line. Next: `data`, `trailer`.
        case sizeLine
        /// Skipping a chunk's data. Next: `dataEnd`.
        case data
        /// Skipping the line end after a chunk's data. Next: `size`.
        case dataEnd
        /// Skipping trailer fields until the empty line. Next: none.
        case trailer(lineBytes: Int)
    }

    private let maxBodyBytes: Int
    private let maxOverheadBytes: Int
    private var state = State.size(digits: 0)
    private var chunkBytes = 0
    private var bodyBytes = 0
    private var overheadBytes = 0

    /// Creates a scanner for one body.
    ///
    /// - Parameters:
    ///   - maxBodyBytes: the data in all chunks.
    ///   - maxOverheadBytes: everything else: sizes, extensions, line ends, trailers.
    init(maxBodyBytes: Int, maxOverheadBytes: Int) {
        self.maxBodyBytes = maxBodyBytes
        self.maxOverheadBytes = maxOverheadBytes
    }

    /// Scans the next bytes of the connection.
    mutating func scan(_ bytes: Span<UInt8>) -> Step {
        var index = 0
        while index < bytes.count {
            if case .data = self.state {
                let skipped = min(self.chunkBytes, bytes.count - index)
                self.chunkBytes -= skipped
                index += skipped
                if self.chunkBytes == 0 {
                    self.state = .dataEnd
                }
                continue
            }
            let byte = bytes[index]
            index += 1
            self.overheadBytes += 1
            if self.overheadBytes > self.maxOverheadBytes {
                return .tooLarge
            }
            switch self.framing(byte) {
            case .incomplete: break
            case .complete: return .complete(byteCount: index)
            case .tooLarge: return .tooLarge
            case .malformed: return .malformed
            }
        }
        return .incomplete
    }

    private mutating func framing(_ byte: UInt8) -> Step {
        switch self.state {
        case .size(let digits):
            return self.size(byte, digits: digits)
        case .sizeLine:
            if byte == UInt8(ascii: "\n") {
                self.endSizeLine()
            }
        case .data:
            break
        case .dataEnd:
            if byte == UInt8(ascii: "\n") {
                self.state = .size(digits: 0)
            }
        case .trailer(let lineBytes):
            if byte != UInt8(ascii: "\n") {
                self.state = .trailer(lineBytes: byte == UInt8(ascii: "\r") ? lineBytes : lineBytes + 1)
            } else if lineBytes > 0 {
                self.state = .trailer(lineBytes: 0)
            } else {
                return .complete(byteCount: 0)
            }
        }
        return .incomplete
    }

    private mutating func size(_ byte: UInt8, digits: Int) -> Step {
        let digit: Int
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = Int(byte - UInt8(ascii: "A")) + 10
        default:
            guard digits > 0 else { return .malformed }
            self.state = .sizeLine
            if byte == UInt8(ascii: "\n") {
                self.endSizeLine()
            }
            return .incomplete
        }
        // Checked digit by digit, so the size never comes near an overflow.
        self.chunkBytes = self.chunkBytes * 16 + digit
        if self.chunkBytes > self.maxBodyBytes - self.bodyBytes {
            return .tooLarge
        }
        self.state = .size(digits: digits + 1)
        return .incomplete
    }

    private mutating func endSizeLine() {
        self.bodyBytes += self.chunkBytes
        self.state = self.chunkBytes == 0 ? .trailer(lineBytes: 0) : .data
    }
}
