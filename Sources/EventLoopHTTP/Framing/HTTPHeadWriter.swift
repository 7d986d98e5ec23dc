import HTTPTypes
import NIOCore

/// A message that is ready to be written in HTTP/1.1: a request or an answer.
protocol HTTPOutgoingMessage {
    /// An upper bound for the head's size, in bytes.
    var headBytes: Int { get }
    var body: ByteBuffer { get }
    func writeHead(to bytes: inout ByteBuffer)
}

extension ChannelHandlerContext {
    /// Copies a small body behind its head, so that both leave in one write.
    func send(_ message: some HTTPOutgoingMessage) {
        let body = message.body
        if body.readableBytes <= 16 * 1024 {
            var bytes = self.channel.allocator.buffer(capacity: message.headBytes + body.readableBytes)
            message.writeHead(to: &bytes)
            bytes.writeImmutableBuffer(body)
            self.writeAndFlush(NIOAny(bytes), promise: nil)
        } else {
            var bytes = self.channel.allocator.buffer(capacity: message.headBytes)
            message.writeHead(to: &bytes)
            self.write(NIOAny(bytes), promise: nil)
            self.writeAndFlush(NIOAny(body), promise: nil)
        }
    }
}

extension ChannelOptions.Types.WriteBufferWaterMark {
    /// A channel is writable while the system has taken everything written.
    ///
    /// Asking if a channel is writable costs a fraction of asking for its buffered bytes.
    static let unwritableUntilFlushed = Self(low: 1, high: 1)
}

/// An answer with the fields that frame it.
struct HTTPOutgoingResponse: HTTPOutgoingMessage {
    enum Connection {
        case unmentioned
        case keepAlive
        case close
    }

    private let status: HTTPResponse.Status
    private let phrase: String
    private let headers: HTTPHeaderLines
    private let contentLength: Int?
    private let connection: Connection
    private let date: [UInt8]
    let body: ByteBuffer

    /// Replaces an informational status by 500, since no final answer would follow it. `date` is the line `Date`.
    init(_ response: HTTPServerResponse, omitsBody: Bool, connection: Connection, date: [UInt8]) {
        self.date = date
        self.connection = connection
        self.headers = response.headers
        switch response.status.code {
        case 200...599:
            self.status = response.status
        default:
            self.status = .internalServerError
        }
        self.phrase = self.status == .ok ? "OK" : Self.phrase(of: self.status)
        // RFC 9110, section 8.6: 204 has no length, and 304 would have that of another answer.
        if self.status == .noContent || self.status == .notModified {
            self.contentLength = nil
            self.body = ByteBuffer()
        } else {
            self.contentLength = response.body.readableBytes
            self.body = omitsBody ? ByteBuffer() : response.body
        }
    }

    var headBytes: Int {
        96 + self.date.count + self.phrase.utf8.count + self.headers.bytes.count
    }

    func writeHead(to bytes: inout ByteBuffer) {
        if self.status == .ok {
            bytes.writeStaticString("HTTP/1.1 200 OK\r\n")
        } else {
            bytes.writeStaticString("HTTP/1.1 ")
            bytes.writeString(String(self.status.code))
            bytes.writeStaticString(" ")
            bytes.writeString(self.phrase)
            bytes.writeStaticString("\r\n")
        }
        bytes.writeBytes(self.date)
        bytes.writeBytes(self.headers.bytes)
        if let contentLength {
            bytes.writeStaticString("Content-Length: ")
            bytes.writeString(String(contentLength))
            bytes.writeStaticString("\r\n")
        }
        switch self.connection {
        case .unmentioned: bytes.writeStaticString("\r\n")
        case .keepAlive: bytes.writeStaticString("Connection: keep-alive\r\n\r\n")
        case .close: bytes.writeStaticString("Connection: close\r\n\r\n")
        }
    }

    /// The usual phrase if only a number was given. Empty for numbers without one.
    private static func phrase(of status: HTTPResponse.Status) -> String {
        status.reasonPhrase.isEmpty ? Self.usualPhrases[status.code] ?? "" : status.reasonPhrase
    }

    private static let usualPhrases: [Int: String] = {
        let named: [HTTPResponse.Status] = [
            .ok, .created, .accepted, .nonAuthoritativeInformation, .noContent, .resetContent, .partialContent,
            .multipleChoices, .movedPermanently, .found, .seeOther, .notModified, .temporaryRedirect,
            .permanentRedirect, .badRequest, .unauthorized, .forbidden, .notFound, .methodNotAllowed, .notAcceptable,
            .proxyAuthenticationRequired, .requestTimeout, .conflict, .gone, .lengthRequired, .preconditionFailed,
            .contentTooLarge, .uriTooLong, .unsupportedMediaType, .rangeNotSatisfiable, .expectationFailed,
            .misdirectedRequest, .unprocessableContent, .tooEarly, .upgradeRequired, .preconditionRequired,
            .tooManyRequests, .requestHeaderFieldsTooLarge, .unavailableForLegalReasons, .internalServerError,
            .notImplemented, .badGateway, .serviceUnavailable, .gatewayTimeout, .httpVersionNotSupported,
            .networkAuthenticationRequired,
        ]
        return Dictionary(uniqueKeysWithValues: named.map { ($0.code, $0.reasonPhrase) })
    }()
}

/// A request with the fields that frame it.
struct HTTPOutgoingRequest: HTTPOutgoingMessage {
    let request: HTTPClientRequest
    let authority: String

    var body: ByteBuffer { self.request.body }

    /// Too small only if the path must be encoded.
    var headBytes: Int {
        96 + self.request.path.utf8.count + self.authority.utf8.count + self.request.headers.bytes.count
    }

    func writeHead(to bytes: inout ByteBuffer) {
        bytes.writeString(self.request.method.rawValue)
        bytes.writeStaticString(" ")
        self.request.writePath(to: &bytes)
        bytes.writeStaticString(" HTTP/1.1\r\nHost: ")
        bytes.writeString(self.authority)
        bytes.writeStaticString("\r\n")
        bytes.writeBytes(self.request.headers.bytes)
        if self.request.statesLength {
            bytes.writeStaticString("Content-Length: ")
            bytes.writeString(String(self.request.body.readableBytes))
            bytes.writeStaticString("\r\n")
        }
        bytes.writeStaticString("\r\n")
    }
}

extension HTTPClientRequest {
    /// Path and query as ``writePath(to:)`` writes them.
    var encodedPath: String {
        guard self.path.utf8.first != UInt8(ascii: "/") || !self.isPathPlain else { return self.path }
        var bytes = ByteBuffer()
        self.writePath(to: &bytes)
        return String(buffer: bytes)
    }

    /// Writes path and query. Bytes that are not allowed there are percent-encoded, and a missing first slash is added.
    ///
    /// So a path can't end its line early or become another field.
    func writePath(to bytes: inout ByteBuffer) {
        if self.path.utf8.first != UInt8(ascii: "/") {
            bytes.writeStaticString("/")
        }
        guard !self.isPathPlain else {
            bytes.writeString(self.path)
            return
        }
        func hexDigit(_ value: UInt8) -> UInt8 {
            value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
        }
        for byte in self.path.utf8 {
            if HTTPGrammar.isTarget(byte) {
                bytes.writeInteger(byte)
            } else {
                bytes.writeStaticString("%")
                bytes.writeInteger(hexDigit(byte >> 4))
                bytes.writeInteger(hexDigit(byte & 0x0F))
            }
        }
    }

    private var isPathPlain: Bool {
        let bytes = self.path.utf8.span
        for index in bytes.indices where !HTTPGrammar.isTarget(bytes[index]) { return false }
        return true
    }
}
