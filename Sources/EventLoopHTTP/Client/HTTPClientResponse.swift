package import HTTPTypes
package import NIOCore

/// The final answer to a request; a redirect is an answer like any other.
package struct HTTPClientResponse: Sendable {
    /// The final status.
    package var status: HTTPResponse.Status
    /// The fields as received.
    package var headers: HTTPFields
    /// The whole body with its transfer coding removed.
    package var body: ByteBuffer

    /// Creates an answer.
    ///
    /// - Parameters:
    ///   - status: the final status.
    ///   - headers: the fields.
    ///   - body: the whole body.
    package init(status: HTTPResponse.Status, headers: HTTPFields = [:], body: ByteBuffer = ByteBuffer()) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}
