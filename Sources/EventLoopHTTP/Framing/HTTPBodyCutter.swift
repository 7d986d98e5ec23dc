import NIOCore

/// Cuts the bytes of one body off the bytes of a connection.
///
/// The parser is fed exactly one message at a time, so whatever follows is still raw bytes: the server answers before
/// it parses the next request, and the client notices what nobody asked for.
struct HTTPBodyCutter {
    enum Cut: Equatable {
        /// Bytes of the body; more must follow.
        case part(ByteBuffer)
        /// The last bytes of the body.
        case last(ByteBuffer)
        /// The body exceeds its limit.
        case tooLarge
        /// The body's framing is broken.
        case malformed
    }

    private enum State {
        case length(remaining: Int)
        case chunked(HTTPChunkScanner)
        case untilClose(allowed: Int)
    }

    private var state: State

    /// Creates a cutter for one body.
    ///
    /// - Parameters:
    ///   - framing: how the body ends; a length has been checked against the limit.
    ///   - maxBodyBytes: the data of the body.
    ///   - maxOverheadBytes: the framing of a chunked body.
    init(framing: HTTPBodyFraming, maxBodyBytes: Int, maxOverheadBytes: Int) {
        switch framing {
        case .none:
            self.state = .length(remaining: 0)
        case .length(let length):
            self.state = .length(remaining: length)
        case .chunked:
            self.state = .chunked(
                HTTPChunkScanner(maxBodyBytes: maxBodyBytes, maxOverheadBytes: maxOverheadBytes)
            )
        case .untilClose:
            self.state = .untilClose(allowed: maxBodyBytes)
        }
    }

    /// Takes what belongs to the body from the front of the bytes.
    ///
    /// - Parameter bytes: the connection's unread bytes, not empty.
    /// - Returns: the bytes taken, or why the body is refused.
    mutating func cut(from bytes: inout ByteBuffer) -> Cut {
        switch self.state {
        case .length(let remaining):
            let taken = min(remaining, bytes.readableBytes)
            self.state = .length(remaining: remaining - taken)
            return Self.take(taken, from: &bytes, isLast: taken == remaining)
        case .chunked(var scanner):
            let step = scanner.scan(bytes.readableBytesUInt8Span)
            self.state = .chunked(scanner)
            switch step {
            case .incomplete:
                return Self.take(bytes.readableBytes, from: &bytes, isLast: false)
            case .complete(let byteCount):
                return Self.take(byteCount, from: &bytes, isLast: true)
            case .tooLarge:
                return .tooLarge
            case .malformed:
                return .malformed
            }
        case .untilClose(let allowed):
            guard bytes.readableBytes <= allowed else { return .tooLarge }
            self.state = .untilClose(allowed: allowed - bytes.readableBytes)
            return Self.take(bytes.readableBytes, from: &bytes, isLast: false)
        }
    }

    private static func take(_ count: Int, from bytes: inout ByteBuffer, isLast: Bool) -> Cut {
        guard let slice = bytes.readSlice(length: count) else { return .malformed }
        return isLast ? .last(slice) : .part(slice)
    }
}
