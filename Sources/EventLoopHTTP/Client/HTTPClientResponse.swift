package import HTTPTypes
package import NIOCore

/// The final answer to a request; a redirect is an answer like any other.
package struct HTTPClientResponse: Sendable {
    /// The final status.
    package let status: HTTPResponse.Status
    /// The fields as received.
    package let fields: HTTPFieldLines
    /// The whole body with its transfer coding removed.
    package let body: ByteBuffer
}
