import Hummingbird
package import Logging
package import NIOCore

/// What a context is made from.
package struct GatewayRequestSource: RequestContextSource {
    /// The listener's logger.
    package let logger: Logger
    /// The whole body.
    package let body: ByteBuffer
    /// The caller's address.
    package let remoteAddress: String?
    /// The names in the certificate of the caller's connection.
    package let clientNames: [String]
    /// When the request was complete.
    package let receivedAt: ContinuousClock.Instant
    /// By how much its event loop is behind.
    package let lag: Duration

    /// A source.
    package init(
        logger: Logger,
        body: ByteBuffer,
        remoteAddress: String?,
        clientNames: [String] = [],
        receivedAt: ContinuousClock.Instant,
        lag: Duration = .zero
    ) {
        self.logger = logger
        self.body = body
        self.remoteAddress = remoteAddress
        self.clientNames = clientNames
        self.receivedAt = receivedAt
        self.lag = lag
    }
}
