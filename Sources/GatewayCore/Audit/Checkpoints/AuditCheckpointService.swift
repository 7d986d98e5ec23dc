import Metrics
import ServiceLifecycle

/// Gives the audit its checkpoints while the gateway runs, and a last one when all chains have ended.
///
/// It runs before the audit's writer, so that it ends after it. What the second sink lacks follows each checkpoint, in a
/// task of its own: a slow sink delays no checkpoint.
package struct AuditCheckpointService: Service {
    /// How long the last checkpoint may take to reach the second sink; what is left then is delivered after the next
    /// start.
    private static let lastDelivery = Duration.seconds(2)

    private let checkpointer: AuditCheckpointer
    private let feeder: AuditSinkFeeder?
    private let interval: Duration

    /// A service that makes checkpoints.
    package init(
        checkpointer: AuditCheckpointer,
        feeder: AuditSinkFeeder?,
        interval: Duration,
        metrics: GatewayMetrics = GatewayMetrics()
    ) {
        metrics.gauge(.auditCheckpointInterval).set(interval / .seconds(1))
        self.checkpointer = checkpointer
        self.feeder = feeder
        self.interval = interval
    }

    /// What checkpoints say of the second sink: 0 without one, `nil` until the sink was asked.
    private var delivered: Int? {
        guard let feeder = self.feeder else { return 0 }
        return feeder.delivered
    }

    /// Makes checkpoints until shutdown, then the last.
    package func run() async throws {
        let (wake, continuation) = AsyncStream<Duration?>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let (life, lifeContinuation) = AsyncStream.makeStream(of: Void.self)
        // Not awaited but by ``life``: a sink that hangs must not keep the process from ending.
        let deliveries = Task {
            for await limit in wake { await self.feeder?.deliver(within: limit) }
            lifeContinuation.finish()
        }
        // What an earlier process left undelivered need not wait for something new.
        continuation.yield(nil)
        // The first one without a wait: an interval may be long, and the audit of this start has begun.
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            _ = await self.checkpointer.checkpoint(delivered: self.delivered)
            continuation.yield(nil)
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: self.interval) }
        }
        self.feeder?.stop()
        _ = await self.checkpointer.checkpoint(delivered: self.delivered)
        continuation.yield(Self.lastDelivery)
        continuation.finish()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in life {} }
            // As long for the piece that the sink is at as for the last delivery.
            group.addTask { try? await Task.sleep(for: Self.lastDelivery * 2) }
            await group.next()
            group.cancelAll()
        }
        deliveries.cancel()
    }
}
