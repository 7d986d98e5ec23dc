package import HTTPTypes
package import NIOCore

/// A request to a pool's origin.
package struct HTTPClientRequest: Sendable {
    /// The method.
    package var method: HTTPRequest.Method
    /// Path and query, starting with `/`; bytes that may not stand in a request line are percent-encoded.
    package var path: String
    /// The fields, except `Host` and those that frame the message: the client sets these itself.
    package var headers: HTTPHeaderLines
    /// The whole body.
    package var body: ByteBuffer
    /// The body of the answer, in bytes; the pool's own limit holds besides.
    package var maxResponseBodyBytes = Self.usualResponseBodyBytes
    /// The number of the tenant that the request is made for, from 1; 0 for one that is made for none.
    ///
    /// Tenants share a pool fairly.
    package var tenant = 0

    /// What suffices for the answer to one message, in bytes.
    package static let usualResponseBodyBytes = 64 * 1024

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - path: path and query.
    ///   - headers: the fields, except `Host` and those that frame the message.
    ///   - body: the whole body.
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
