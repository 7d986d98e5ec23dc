package import NIOCore

/// A request that a send would make to its upstream, with the credential masked.
package struct PlannedRequest: Sendable, Hashable {
    /// Where it would go.
    package var url: String
    /// What `Authorization` would hold, with stars in place of the credential.
    package var maskedAuthorization: String
    /// The JSON that it would carry.
    package var body: ByteBuffer
}
