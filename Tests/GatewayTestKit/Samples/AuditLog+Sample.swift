package import GatewayCore
package import Logging
import ServiceLifecycleTestKit

extension AuditConfiguration {
    /// No pause between batches, a millisecond between attempts, and no time that is up before a test's is.
    package static func sample(queueCapacity: Int = 10_000, commitTimeout: Duration = .seconds(600)) -> Self {
        var configuration = AuditConfiguration()
        configuration.queueRecords = queueCapacity
        configuration.flushInterval = .zero
        configuration.retryInterval = .milliseconds(1)
        configuration.commitTimeout = commitTimeout
        configuration.spoolAfter = .seconds(3_600)
        return configuration
    }
}

extension AuditLog {
    /// A log over a store that waits for nothing: no pause between batches, a millisecond between attempts.
    package static func sample(
        store: any AuditStore,
        spool: (any AuditSpoolFile)? = nil,
        spoolBytes: Int = 1 << 24,
        clock: any WallClock = ManualClock(),
        auditKey: Secret = .sample("audit"),
        configuration: AuditConfiguration = .sample(),
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    ) -> AuditLog {
        AuditLog(
            store: store,
            spool: spool.map {
                AuditSpool(file: $0, sealer: AuditSpoolSealer(auditKey: auditKey), maxBytes: spoolBytes)
            },
            sealer: AuditSealer(auditKey: auditKey),
            clock: clock,
            configuration: configuration,
            metrics: metrics,
            logger: logger
        )
    }

    /// A place for a record, for a test that counts on one.
    ///
    /// - Throws: ``SampleError`` when none is given.
    package func place() throws -> AuditReservation {
        guard let place = self.reserve() else { throw SampleError(what: "place in the audit") }
        return place
    }

    /// Whether a place would be given now.
    package var hasPlace: Bool {
        guard let place = self.reserve() else { return false }
        _ = consume place
        return true
    }

    /// Runs the log beside a test, then shuts it down gracefully and waits for its end.
    ///
    /// - Throws: what the test or the log throws.
    package func whileRunning<Result: Sendable>(
        _ body: @Sendable () async throws -> Result
    ) async throws -> Result {
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await self.run() }
                let result = try await body()
                trigger.triggerGracefulShutdown()
                try await group.waitForAll()
                return result
            }
        }
    }
}
