import HTTPTypes
import NIOCore

@testable import EventLoopHTTP

/// Reads requests from a connection's bytes with the server's scanner, parser and body reader, without the server.
struct RequestStream {
    struct Request: Equatable {
        var method: String
        var path: [UInt8]
        var names: [String]
        var values: [String]
        var framing: HTTPBodyFraming
        var keepsAlive: Bool
        var body: [UInt8]
        /// The bytes of the head, including those before its first line.
        var head: [UInt8]
    }

    /// The state of reading.
    enum End: Equatable {
        /// More bytes may follow.
        case waiting
        /// A request was refused, and reading has stopped.
        case refused(status: Int)
    }

    private enum Phase {
        case head(HTTPHeadScanner)
        case body(HTTPBodyReader, HTTPHeadParser.AcceptedRequest)
    }

    private static let limits = HTTPHeadScanner.Limits(
        maxHeadBytes: 1_024,
        maxStartLineBytes: 256,
        maxFieldBytes: 256,
        maxFields: 16
    )
    private static let maxURIBytes = 200
    private static let maxBodyBytes = 256
    private static let maxOverheadBytes = 256

    private(set) var requests: [Request] = []
    private(set) var end = End.waiting
    private var phase = Phase.head(HTTPHeadScanner(limits: Self.limits))
    private var pending = ByteBuffer()
    private var head = ByteBuffer()

    static func read(_ pieces: [ByteBuffer]) -> RequestStream {
        var stream = RequestStream()
        for piece in pieces {
            stream.pending.writeImmutableBuffer(piece)
            while stream.end == .waiting, stream.pending.readableBytes > 0 {
                stream.advance()
            }
        }
        return stream
    }

    private mutating func advance() {
        switch self.phase {
        case .head(var scanner):
            let step = scanner.scan(self.pending.readableBytesUInt8Span)
            self.phase = .head(scanner)
            self.advance(step)
        case .body(var reader, let accepted):
            let step = reader.read(from: &self.pending)
            self.phase = .body(reader, accepted)
            switch step {
            case .incomplete: break
            case .complete: self.finish(accepted, body: reader.body)
            case .tooLarge: self.end = .refused(status: 413)
            case .malformed: self.end = .refused(status: 400)
            }
        }
    }

    private mutating func advance(_ step: HTTPHeadScanner.Step) {
        switch step {
        case .incomplete:
            self.head.writeBuffer(&self.pending)
        case .complete(let byteCount):
            guard var bytes = self.pending.readSlice(length: byteCount) else { return }
            self.head.writeBuffer(&bytes)
            do throws(HTTPServerRefusal) {
                self.accept(try HTTPHeadParser.request(self.head, maxURIBytes: Self.maxURIBytes))
            } catch {
                self.end = .refused(status: error.status.code)
            }
        case .tooLarge:
            self.end = .refused(status: 431)
        case .startLineTooLong:
            self.end = .refused(status: 414)
        case .malformed:
            self.end = .refused(status: 400)
        }
    }

    private mutating func accept(_ accepted: HTTPHeadParser.AcceptedRequest) {
        switch accepted.framing {
        case .none:
            self.finish(accepted, body: ByteBuffer())
        case .length(let length) where length > Self.maxBodyBytes:
            self.end = .refused(status: 413)
        case .length, .chunked, .untilClose:
            let reader = HTTPBodyReader(
                framing: accepted.framing,
                maxBodyBytes: Self.maxBodyBytes,
                maxOverheadBytes: Self.maxOverheadBytes
            )
            self.phase = .body(reader, accepted)
        }
    }

    private mutating func finish(_ accepted: HTTPHeadParser.AcceptedRequest, body: ByteBuffer) {
        let fields = accepted.head.fields.fields
        self.requests.append(
            Request(
                method: accepted.head.method.rawValue,
                path: accepted.head.pathBytes,
                names: fields.map { $0.name.rawName },
                values: fields.map { $0.value },
                framing: accepted.framing,
                keepsAlive: accepted.keepsAlive,
                body: Array(body.readableBytesView),
                head: Array(self.head.readableBytesView)
            )
        )
        self.head = ByteBuffer()
        self.phase = .head(HTTPHeadScanner(limits: Self.limits))
    }
}
