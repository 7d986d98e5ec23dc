/// What is known of a request that the server itself refused.
package struct HTTPRefusedRequest: Sendable {
    /// The peer's IP address as text, without the port.
    package let remoteAddress: String?
    /// The head, where it was complete and well-formed.
    package let head: HTTPRequestHead?

    /// Describes a request.
    ///
    /// - Parameters:
    ///   - remoteAddress: the peer's IP address as text, without the port.
    ///   - head: the head, where it was complete and well-formed.
    package init(remoteAddress: String?, head: HTTPRequestHead? = nil) {
        self.remoteAddress = remoteAddress
        self.head = head
    }
}
