package import HTTPTypes
package import NIOCore

/// A request to a pool's origin.
package struct HTTPClientRequest: Sendable {
    package var method: HTTPRequest.Method
    /// Path and query, starting with `/`. Bytes that a request line can't contain are percent-encoded.
    package var path: String
    /// The fields, except `Host` and those that frame the message, which the client sets itself.
    package var headers: HTTPHeaderLines
    package var body: ByteBuffer
    /// The most bytes that the body of the answer may have. The pool's own limit applies too.
    package var maxResponseBodyBytes = Self.usualResponseBodyBytes
    /// The number of the tenant for which the request is made, from 1; 0 for none.
    package var tenant = 0

    /// Enough for the answer to one message, in bytes.
    package static let usualResponseBodyBytes = 64 * 1024

    package init(
        method: HTTPRequest.Method,
        path: String,
        headers: HTTPHeaderLines = [:],
        body: ByteBuffer = ByteBuffer()
    ) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
    }

    /// True if the length of the body is stated: there is a body, or the method expects one.
    var statesLength: Bool {
        guard self.body.readableBytes == 0 else { return true }
        switch self.method {
        case .post, .put, .patch: return true
        default: return false
        }
    }
}

/// The final answer to a request. Redirects are not followed.
///
/// It is a class because every step on its way to the caller would copy its parts.
package final class HTTPClientResponse: Sendable {
    /// The part before the body.
    struct Head {
        let status: HTTPResponse.Status
        let fields: HTTPFieldLines
    }

    package let status: HTTPResponse.Status
    package let fields: HTTPFieldLines
    /// The whole body with its transfer coding removed.
    package let body: ByteBuffer

    init(_ head: Head, body: ByteBuffer) {
        (self.status, self.fields) = (head.status, head.fields)
        self.body = body
    }
}

/// Why an exchange has no answer.
package struct HTTPClientError: Error, Sendable {
    /// The reason. Callers switch over it.
    package enum Code: String, Error, CaseIterable {
        case connectFailed
        case connectTimeout
        /// The proxy can't be reached, or does not open a tunnel to the origin.
        case proxyFailed
        /// The proxy wants other credentials (407).
        case proxyUnauthorized
        /// The TLS handshake failed, or the certificate is not the origin's.
        case tlsFailed
        case deadlineExceeded
        case connectionClosed
        case responseTooLarge
        case invalidResponse
        /// Connections refused every allowed attempt at the exchange without processing it.
        case refused
        /// The queue for connections is full, or the pools have reached their limit of connections.
        case poolExhausted
        case cancelled
        case shutDown
    }

    package let code: Code
    /// True if any byte of the request may have reached the peer. If false, repeating the request can't duplicate it.
    package let requestSent: Bool
    package let cause: (any Error)?

    package init(code: Code, requestSent: Bool, cause: (any Error)? = nil) {
        self.code = code
        self.requestSent = requestSent
        self.cause = cause
    }
}
