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

    let response: HTTPServerResponse
    var omitsBody = false
    let connection: Connection
    /// The line `Date`.
    let date: [UInt8]

    /// The status that is written: 500 in place of one that is not final, because no final answer would follow it.
    private var status: HTTPResponse.Status {
        (200...599).contains(self.response.status.code) ? self.response.status : .internalServerError
    }

    /// False for 204, which has no length, and 304, whose length would be that of another answer (RFC 9110, section 8.6).
    /// Such an answer has no body either.
    private var hasLength: Bool { self.response.status != .noContent && self.response.status != .notModified }

    var body: ByteBuffer { self.omitsBody || !self.hasLength ? ByteBuffer() : self.response.body }

    /// 128 covers the fixed parts and a usual phrase.
    var headBytes: Int {
        128 + self.date.count + self.response.status.reasonPhrase.utf8.count + self.response.headers.bytes.count
    }

    func writeHead(to bytes: inout ByteBuffer) {
        if self.response.status == .ok {
            bytes.writeStaticString("HTTP/1.1 200 OK\r\n")
        } else {
            let status = self.status
            bytes.writeStaticString("HTTP/1.1 ")
            bytes.writeString(String(status.code))
            bytes.writeStaticString(" ")
            bytes.writeString(Self.phrase(of: status))
            bytes.writeStaticString("\r\n")
        }
        bytes.writeBytes(self.date)
        bytes.writeBytes(self.response.headers.bytes)
        if self.hasLength {
            bytes.writeStaticString("Content-Length: ")
            bytes.writeString(String(self.response.body.readableBytes))
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
