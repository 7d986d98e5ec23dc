/// Finds the end of a message's head, and bounds its size on the wire.
///
/// The parser receives only complete heads. The scanner counts every byte, and gives up early on bytes that can't
/// become a head, such as those of a binary protocol.
struct HTTPHeadScanner {
    struct Limits: Sendable {
        /// The whole head in bytes, with line ends and the empty line that closes it.
        var maxHeadBytes: Int
        /// The first line in bytes, without its line end.
        var maxStartLineBytes: Int
        /// One field line in bytes, without its line end.
        var maxFieldBytes: Int
        var maxFields: Int
    }

    enum Step: Equatable {
        /// All bytes belong to the head, which is not complete.
        case incomplete
        /// This many of the bytes complete the head.
        case complete(byteCount: Int)
        /// The head, one of its fields or their number exceeds its limit.
        case tooLarge
        case startLineTooLong
        case malformed
    }

    private let limits: Limits
    private var headBytes = 0
    private var lineBytes = 0
    private var lineEndsInReturn = false
    private var lines = 0

    init(limits: Limits) {
        self.limits = limits
    }

    var isUntouched: Bool {
        self.headBytes == 0
    }

    mutating func scan(_ bytes: Span<UInt8>) -> Step {
        var lineStart = 0
        var index = 0
        while index < bytes.count {
            guard bytes[index] == HTTPGrammar.lineFeed else {
                index = HTTPGrammar.nextLineFeed(in: bytes, from: index)
                continue
            }
            if index > lineStart {
                self.lineEndsInReturn = bytes[index - 1] == UInt8(ascii: "\r")
            }
            let length = self.lineBytes + (index - lineStart) - (self.lineEndsInReturn ? 1 : 0)
            index += 1
            if self.headBytes + index > self.limits.maxHeadBytes {
                return .tooLarge
            }
            if length > self.lineLimit {
                return self.lines == 0 ? .startLineTooLong : .tooLarge
            }
            self.lineBytes = 0
            self.lineEndsInReturn = false
            lineStart = index
            if length > 0 {
                self.lines += 1
                if self.lines > self.limits.maxFields + 1 {
                    return .tooLarge
                }
            } else if self.lines > 0 {
                self.headBytes += index
                return .complete(byteCount: index)
            }
            // Empty lines before the first line are skipped (RFC 9112, section 2.2). They only count as bytes.
        }
        return self.carry(bytes, from: lineStart)
    }

    private var lineLimit: Int {
        self.lines == 0 ? self.limits.maxStartLineBytes : self.limits.maxFieldBytes
    }

    /// Records the unfinished line, and refuses it if it can't become valid.
    private mutating func carry(_ bytes: Span<UInt8>, from lineStart: Int) -> Step {
        self.headBytes += bytes.count
        self.lineBytes += bytes.count - lineStart
        for index in lineStart..<bytes.count {
            // Only a line feed may follow a carriage return.
            guard !self.lineEndsInReturn else { return .malformed }
            self.lineEndsInReturn = bytes[index] == HTTPGrammar.carriageReturn
            guard self.lineEndsInReturn || HTTPGrammar.isText(bytes[index]) else { return .malformed }
        }
        if self.lineBytes > self.lineLimit + 1 {
            return self.lines == 0 ? .startLineTooLong : .tooLarge
        }
        return self.headBytes > self.limits.maxHeadBytes ? .tooLarge : .incomplete
    }
}
