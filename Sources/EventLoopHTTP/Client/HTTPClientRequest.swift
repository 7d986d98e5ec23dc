package import HTTPTypes
package import NIOCore

/// A request to a pool's origin.
package struct HTTPClientRequest: Sendable {
    package var method: HTTPRequest.Method
    /// Path and query, starting with `/`; bytes that may not stand in a request line are percent-encoded.
    package var path: String
    /// The fields, except `Host` and those that frame the message: the client sets these itself.
    package var headers: HTTPHeaderLines
    package var body: ByteBuffer
    /// The most that the body of the answer may have, in bytes; the pool's own limit holds besides.
    package var maxResponseBodyBytes = Self.usualResponseBodyBytes
    /// The number of the tenant that the request is made for, from 1; 0 for one that is made for none.
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

    /// Whether the length of the body is stated: where there is one, or where one is expected.
    var statesLength: Bool {
        guard self.body.readableBytes == 0 else { return true }
        switch self.method {
        case .post, .put, .patch: return true
        default: return false
        }
    }
}

/// The final answer to a request; a redirect is an answer like any other.
package struct HTTPClientResponse: Sendable {
    package let status: HTTPResponse.Status
    package let fields: HTTPFieldLines
    /// The whole body with its transfer coding removed.
    package internal(set) var body = ByteBuffer()
}

/// Why an exchange has no answer.
package struct HTTPClientError: Error, Sendable {
    /// What went wrong; callers switch over it.
    package enum Code: String, Error, CaseIterable {
        case connectFailed
        case connectTimeout
        /// The connection could not be encrypted, or the certificate is not the origin's.
        case tlsFailed
        case deadlineExceeded
        case connectionClosed
        case responseTooLarge
        case invalidResponse
        /// Every connection refused the exchange without having looked at it, as often as that is repeated.
        case refused
        /// As many exchanges wait for a connection as may, or the pools have as many connections as they may.
        case poolExhausted
        case cancelled
        case shutDown
    }

    package let code: Code
    /// Whether any byte of the request may have reached the peer; if not, repeating it cannot duplicate it.
    package let requestSent: Bool
    package let cause: (any Error)?

    package init(code: Code, requestSent: Bool, cause: (any Error)? = nil) {
        self.code = code
        self.requestSent = requestSent
        self.cause = cause
    }
}
