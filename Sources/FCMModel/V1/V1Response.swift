package import NIOCore

/// A v1 upstream's answer as it came off the wire.
package struct V1Response: Sendable, Hashable {
    /// The HTTP status.
    package var status: Int
    /// The value of `Retry-After`, if there is one.
    package var retryAfter: String?
    /// The value of `Content-Type`, if there is one; of interest only where the answer is handed on.
    package var contentType: String?
    /// The body's bytes.
    package var body: ByteBuffer

    /// An answer.
    package init(status: Int, retryAfter: String?, contentType: String? = nil, body: ByteBuffer) {
        self.status = status
        self.retryAfter = retryAfter
        self.contentType = contentType
        self.body = body
    }
}
