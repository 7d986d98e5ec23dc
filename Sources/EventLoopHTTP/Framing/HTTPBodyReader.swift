import NIOCore

/// Takes one body off the bytes of a connection, without its transfer coding.
///
/// Whatever follows the body is left alone: the server answers before it looks at the next request, and the client
/// notices what nobody asked for.
struct HTTPBodyReader {
    enum Step: Equatable {
        /// More bytes must follow.
        case incomplete
        /// The body is complete.
        case complete
        /// The data, or the framing around it, exceeds its limit.
        case tooLarge
        /// The framing is broken.
        case malformed
    }

    private enum Framing {
        case length(remaining: Int)
        case chunked(HTTPChunkReader)
        case untilClose(allowed: Int)
    }

    private var framing: Framing
    /// The body so far.
    private(set) var body = ByteBuffer()

    /// Creates a reader that has nothing to read.
    init() {
        self.framing = .length(remaining: 0)
    }

    /// Creates a reader for one body.
    ///
    /// - Parameters:
    ///   - framing: how the body ends; a length has been checked against the limit.
    ///   - maxBodyBytes: the data of the body.
    ///   - maxOverheadBytes: the framing of a chunked body.
    init(framing: HTTPBodyFraming, maxBodyBytes: Int, maxOverheadBytes: Int) {
        switch framing {
        case .none:
            self.framing = .length(remaining: 0)
        case .length(let length):
            self.framing = .length(remaining: length)
        case .chunked:
            self.framing = .chunked(HTTPChunkReader(maxBodyBytes: maxBodyBytes, maxOverheadBytes: maxOverheadBytes))
        case .untilClose:
            self.framing = .untilClose(allowed: maxBodyBytes)
        }
    }

    /// Takes what belongs to the body from the front of the bytes.
    mutating func read(from bytes: inout ByteBuffer) -> Step {
        switch self.framing {
        case .length(let remaining):
            guard let data = bytes.readSlice(length: min(remaining, bytes.readableBytes)) else { return .malformed }
            self.body.appendBody(data)
            self.framing = .length(remaining: remaining - data.readableBytes)
            return data.readableBytes == remaining ? .complete : .incomplete
        case .chunked(var reader):
            let step = reader.read(from: &bytes, into: &self.body)
            self.framing = .chunked(reader)
            return step
        case .untilClose(let allowed):
            guard bytes.readableBytes <= allowed else { return .tooLarge }
            self.framing = .untilClose(allowed: allowed - bytes.readableBytes)
            self.body.appendBody(bytes)
            bytes.moveReaderIndex(to: bytes.writerIndex)
            return .incomplete
        }
    }
}

extension ByteBuffer {
    /// Bodies up to this size are copied behind their head, so that both leave in one write.
    static let coalescedBodyBytes = 16 * 1024

    /// Adds a piece of a body; the first is kept as it is, which for most bodies spares the copy.
    mutating func appendBody(_ bytes: ByteBuffer) {
        if self.readableBytes == 0 {
            self = bytes
        } else {
            self.writeImmutableBuffer(bytes)
        }
    }
}
