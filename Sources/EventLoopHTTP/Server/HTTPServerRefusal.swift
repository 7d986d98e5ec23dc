package import HTTPTypes

/// The server's reason to refuse a request before a responder sees it.
///
/// The server answers each refusal once, and closes the connection after the answer.
package enum HTTPServerRefusal: Error, Hashable {
    /// The request is malformed or ambiguous. The reason is one of a fixed set of sentences.
    case badRequest(reason: String)
    case uriTooLong
    /// The head, one of its fields, or their number exceeds its limit.
    case headerTooLarge
    /// The body, or the framing of a chunked one, exceeds its limit.
    case bodyTooLarge
    case headTimeout
    case bodyTimeout
    /// The body has a transfer coding other than `chunked` (RFC 9112, section 6.1).
    case unsupportedTransferEncoding
    case httpVersionNotSupported
    /// The request expects something other than `100-continue` (RFC 9110, section 10.1.1).
    case expectationFailed
    case tooManyConnections
    /// Buffered bodies leave no room for this request's. The path selects the form of the answer.
    case tooManyBufferedBytes(path: [UInt8])

    package var status: HTTPResponse.Status { self.answer.status }

    /// One sentence for the client. It never repeats the client's input.
    package var reason: String { self.answer.reason }

    private var answer: (status: HTTPResponse.Status, reason: String) {
        switch self {
        case .badRequest(let reason): (.badRequest, reason)
        case .uriTooLong: (.uriTooLong, "The request target is too long.")
        case .headerTooLarge:
            (.requestHeaderFieldsTooLarge, "The request's header fields are too large or too many.")
        case .bodyTooLarge: (.contentTooLarge, "The request body is too large.")
        case .headTimeout: (.requestTimeout, "The request's head did not arrive in time.")
        case .bodyTimeout: (.requestTimeout, "The request's body did not arrive in time.")
        case .unsupportedTransferEncoding: (.notImplemented, "Only the chunked transfer coding is supported.")
        case .httpVersionNotSupported: (.httpVersionNotSupported, "Only HTTP/1.1 and HTTP/1.0 are supported.")
        case .expectationFailed: (.expectationFailed, "Only the expectation 100-continue is supported.")
        case .tooManyConnections: (.serviceUnavailable, "The server holds as many connections as it may.")
        case .tooManyBufferedBytes: (.serviceUnavailable, "The server holds as many bytes of requests as it may.")
        }
    }
}

/// A request that the server itself refused.
package struct HTTPRefusedRequest: Sendable {
    /// The peer's IP address as text, without the port.
    package let remoteAddress: String?
    /// The head, if it was complete and well-formed.
    package let head: HTTPRequestHead?

    package init(remoteAddress: String?, head: HTTPRequestHead? = nil) {
        self.remoteAddress = remoteAddress
        self.head = head
    }
}

/// The server's reason to end a connection without an answer. The raw value is its name in metrics.
package enum HTTPServerCloseReason: String, Sendable, CaseIterable {
    /// The peer did not read its answer in time.
    case writeStalled = "write_stalled"
    /// The peer kept sending after an answer that announced the connection's end, or while the server answered the
    /// peer's request.
    case flooded
    case handshakeTimeout = "handshake_timeout"
    /// The server has reached its limit of connections. Over TLS an answer would cost a handshake.
    case tooManyConnections = "too_many_connections"
    /// The server has reached its limit of connections, and this one was idle when another arrived.
    case evicted
    case outOfDescriptors = "out_of_descriptors"
}
