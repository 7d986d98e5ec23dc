import Logging
import NIOCore

/// What all connections of one pool share.
final class HTTPClientCore: Sendable {
    /// Interim answers before a final one.
    static let maxInformationalHeads = 8

    let authority: String
    let configuration: HTTPClientConfiguration
    let idleTimeout: TimeAmount
    let connectTimeout: TimeAmount
    let scanLimits: HTTPHeadScanner.Limits
    let parser: HTTPResponseHeadParser
    let http2: HTTP2ClientSettings
    let logger: Logger

    init(origin: HTTPOrigin, configuration: HTTPClientConfiguration, logger: Logger) {
        self.authority = origin.authority
        self.configuration = configuration
        self.idleTimeout = TimeAmount(configuration.idleTimeout)
        self.connectTimeout = TimeAmount(configuration.connectTimeout)
        self.scanLimits = HTTPHeadScanner.Limits(
            maxHeadBytes: configuration.maxResponseHeadBytes,
            maxStartLineBytes: configuration.maxResponseHeadBytes,
            maxFieldBytes: configuration.maxResponseHeadBytes,
            maxFields: configuration.maxResponseFields
        )
        self.parser = HTTPResponseHeadParser(maxBodyBytes: configuration.maxResponseBodyBytes)
        self.http2 = HTTP2ClientSettings(configuration)
        self.logger = logger
    }
}
