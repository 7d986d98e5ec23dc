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
    /// What is held of answers of this origin that are not complete.
    private let collecting: HTTPBodyGauge
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
        self.collecting = HTTPBodyGauge(limit: configuration.collecting.limit / 2)
        self.http2 = HTTP2ClientSettings(configuration)
        self.logger = logger
    }

    /// How long the body of the answer to a request may be, in bytes.
    func maxBodyBytes(for request: HTTPClientRequest) -> Int {
        min(request.maxResponseBodyBytes, self.configuration.maxResponseBodyBytes)
    }

    /// Counts bytes of an answer that is not complete with them.
    ///
    /// - Returns: false, with nothing counted, where that is more than may be held.
    func hold(_ byteCount: Int) -> Bool {
        guard self.collecting.hold(byteCount) else { return false }
        guard self.configuration.collecting.hold(byteCount) else {
            self.collecting.release(byteCount)
            return false
        }
        return true
    }

    /// An answer of which bytes were counted is complete, or given up.
    func release(_ byteCount: Int) {
        guard byteCount > 0 else { return }
        self.collecting.release(byteCount)
        self.configuration.collecting.release(byteCount)
    }
}
