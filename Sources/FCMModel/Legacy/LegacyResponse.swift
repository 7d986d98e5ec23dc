package import NIOCore

/// A legacy upstream's answer as it came off the wire.
package struct LegacyResponse: Sendable, Hashable {
    /// The HTTP status.
    package var status: Int
    /// The value of `Retry-After`, if there is one.
    package var retryAfter: String?
    /// The body's bytes.
    package var body: ByteBuffer

    /// An answer.
    package init(status: Int, retryAfter: String?, body: ByteBuffer) {
        self.status = status
        self.retryAfter = retryAfter
        self.body = body
    }
}
