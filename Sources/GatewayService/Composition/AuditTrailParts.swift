import GatewayCore
import GatewayStorage
import Logging

/// What stands around the audit's writer: checkpoints, the second sink, retention.
struct AuditTrailParts {
    /// Signs checkpoints; prepared before the writer opens its chain.
    let checkpointer: AuditCheckpointer
    /// Makes checkpoints while the gateway runs.
    let checkpoints: AuditCheckpointService
    /// The second sink, if it is a file.
    let sinkFile: AuditSinkFile?
    /// Removes what is too old, and tells the writer.
    let retention: (AuditLog) -> AuditRetentionService

    /// The parts as configured.
    ///
    /// - Throws: `invalid` for a signing key that is none.
    init(
        _ configuration: GatewayConfiguration,
        database: any SQLDatabase,
        secrets: GatewaySecrets,
        clock: any WallClock,
        metrics: GatewayMetrics,
        logger: Logger
    ) throws(GatewayError) {
        let signer = try secrets.auditSigner()
        let store = SQLAuditStore(database: database)
        let days = configuration.audit.retentionDays
        let file = configuration.auditSinkPath.map { AuditSinkFile(path: $0) }
        var sink: (any AuditSink)? = file
        if configuration.audit.sink == AuditConfiguration.sinkOutput {
            sink = AuditSinkOutput()
        }
        self.sinkFile = file
        self.checkpointer = AuditCheckpointer(
            store: store,
            signer: signer,
            sealer: AuditSealer(auditKey: secrets.auditKey),
            clock: clock,
            // As many as there are in the time that records are kept, when something happens all the time.
            keptCount: days * 24 * AuditCheckpoint.anchorInterval,
            metrics: metrics,
            logger: logger
        )
        let feeder = sink.map {
            AuditSinkFeeder(
                sink: $0,
                store: store,
                publicKey: signer.publicKey,
                metrics: metrics,
                logger: logger
            )
        }
        self.checkpoints = AuditCheckpointService(
            checkpointer: self.checkpointer,
            feeder: feeder,
            interval: configuration.audit.checkpointInterval,
            metrics: metrics
        )
        let sealer = AuditSealer(auditKey: secrets.auditKey)
        self.retention = { audit in
            AuditRetentionService(
                store: store,
                signer: signer,
                sealer: sealer,
                audit: audit,
                clock: clock,
                retention: .seconds(days * 86_400),
                metrics: metrics,
                logger: logger
            )
        }
    }
}
