package import HTTPTypes

/// Why the server itself refused a request before any responder saw it.
///
/// Each is answered once, and the connection is closed behind the answer.
package enum HTTPServerRefusal: Error, Hashable {
    /// The request is malformed or ambiguous; the reason is one of a fixed set of sentences.
    case badRequest(reason: String)
    /// The request target exceeds its limit.
    case uriTooLong
    /// The head, one of its fields, or their number exceeds its limit.
    case headerTooLarge
    /// The body, or the framing of a chunked one, exceeds its limit.
    case bodyTooLarge
    /// The head was not complete in time.
    case headTimeout
    /// The body was not complete in time.
    case bodyTimeout
    /// The body comes in a transfer coding other than `chunked` (RFC 9112, section 6.1).
    case unsupportedTransferEncoding
    /// The request is neither HTTP/1.0 nor HTTP/1.1.
    case httpVersionNotSupported
    /// The request expects something other than `100-continue` (RFC 9110, section 10.1.1).
    case expectationFailed
    /// The server holds as many connections as it may.
    case tooManyConnections
    /// The bodies that the server holds leave no room for this request's; the path selects the form of the answer.
    case tooManyBufferedBytes(path: [UInt8])

    /// The status the refusal is answered with.
    package var status: HTTPResponse.Status {
        switch self {
        case .badRequest: .badRequest
        case .uriTooLong: .uriTooLong
        case .headerTooLarge: .requestHeaderFieldsTooLarge
        case .bodyTooLarge: .contentTooLarge
        case .headTimeout, .bodyTimeout: .requestTimeout
        case .unsupportedTransferEncoding: .notImplemented
        case .httpVersionNotSupported: .httpVersionNotSupported
        case .expectationFailed: .expectationFailed
        case .tooManyConnections, .tooManyBufferedBytes: .serviceUnavailable
        }
    }

    /// One sentence for the client; it never repeats what the client sent.
    package var reason: String {
        switch self {
        case .badRequest(let reason): reason
        case .uriTooLong: "The request target is too long."
        case .headerTooLarge: "The request's header fields are too large or too many."
        case .bodyTooLarge: "The request body is too large."
        case .headTimeout: "The request's head did not arrive in time."
        case .bodyTimeout: "The request's body did not arrive in time."
        case .unsupportedTransferEncoding: "Only the chunked transfer coding is supported."
        case .httpVersionNotSupported: "Only HTTP/1.1 and HTTP/1.0 are supported."
        case .expectationFailed: "Only the expectation 100-continue is supported."
        case .tooManyConnections: "The server holds as many connections as it may."
        case .tooManyBufferedBytes: "The server holds as many bytes of requests as it may."
        }
    }
}

/// A request that the server itself refused.
package struct HTTPRefusedRequest: Sendable {
    /// The peer's IP address as text, without the port.
    package let remoteAddress: String?
    /// The head, where it was complete and well-formed.
    package let head: HTTPRequestHead?

    package init(remoteAddress: String?, head: HTTPRequestHead? = nil) {
        self.remoteAddress = remoteAddress
        self.head = head
    }
}

/// Why the server ended a connection without an answer; the raw value is its name in metrics.
package enum HTTPServerCloseReason: String, Sendable, CaseIterable {
    /// The peer did not read its answer in time.
    case writeStalled = "write_stalled"
    /// The peer went on sending behind an answer that told it of the connection's end, or behind its own request.
    case flooded
    /// The peer did not finish the TLS handshake in time.
    case handshakeTimeout = "handshake_timeout"
    /// The server holds as many connections as it may; over TLS an answer would cost a handshake.
    case tooManyConnections = "too_many_connections"
    /// The server holds as many connections as it may, and this one was idle when another came.
    case evicted
    /// The process has no file descriptor left.
    case outOfDescriptors = "out_of_descriptors"
}
