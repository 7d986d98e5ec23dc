import HTTPTypes
import Logging
import NIOCore
import Synchronization

/// What all connections of one server share.
final class HTTPServerCore: Sendable {
    /// The configuration's durations in the loop's unit, converted once.
    struct Timeouts: Sendable {
        let head: TimeAmount
        let body: TimeAmount
        let writeStall: TimeAmount
        let keepAlive: TimeAmount
        let linger: TimeAmount
        let settling: TimeAmount
    }

    /// Bytes discarded behind a last answer before the connection is closed all the same.
    static let maxLingerBytes = 1024 * 1024
    /// Bytes of later requests held while one is answered; only a closing peer can reach this.
    static let maxHeldBytes = 512 * 1024

    /// Bytes of an answer that have to leave in the time that a write may stall, unless fewer are left: a peer that
    /// reads a byte now and then holds no connection for ever.
    static let minFlushedBytes = 16 * 1024

    let configuration: HTTPServerConfiguration
    let timeouts: Timeouts
    let scanLimits: HTTPHeadScanner.Limits
    let responder: any HTTPServerResponder
    let logger: Logger
    let gauge: HTTPConnectionGauge
    let bodies: HTTPBodyGauge
    private let draining = Atomic<Bool>(false)

    init(configuration: HTTPServerConfiguration, responder: any HTTPServerResponder, logger: Logger) {
        self.configuration = configuration
        self.timeouts = Timeouts(
            head: TimeAmount(configuration.headTimeout),
            body: TimeAmount(configuration.bodyTimeout),
            writeStall: TimeAmount(configuration.writeStallTimeout),
            keepAlive: TimeAmount(configuration.keepAliveTimeout),
            linger: TimeAmount(configuration.lingerTimeout),
            settling: TimeAmount(configuration.settlingTime)
        )
        self.scanLimits = HTTPHeadScanner.Limits(
            maxHeadBytes: configuration.maxHeadBytes,
            // Room for the longest method and the version beside the target, which is measured once it is parsed.
            maxStartLineBytes: configuration.maxURIBytes + 64,
            maxFieldBytes: configuration.maxFieldBytes,
            maxFields: configuration.maxFields
        )
        self.responder = responder
        self.logger = logger
        self.gauge = HTTPConnectionGauge(limit: configuration.maxConnections)
        self.bodies = HTTPBodyGauge(limit: configuration.maxBufferedBytes)
    }

    /// Whether every answer ends its connection.
    var isDraining: Bool {
        self.draining.load(ordering: .relaxed)
    }

    /// From now on, every answer ends its connection.
    func beginDraining() {
        self.draining.store(true, ordering: .relaxed)
    }
}
