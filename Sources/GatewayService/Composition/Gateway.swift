import EventLoopHTTP
package import GatewayCore
import GatewayHTTP
import GatewayStorage
import GatewayUpstream
package import Logging
import Metrics
import NIOCore
import NIOPosix
import PrometheusMetrics
package import ServiceLifecycle
package import UnixSignals

/// A complete gateway. No other type knows all parts.
package struct Gateway: Sendable {
    /// An open store, with this process's membership among its replicas.
    private struct OpenStore {
        let masterKey: MasterKey
        let database: any SQLDatabase
        let replicas: Replicas
        let close: @Sendable () async throws -> Void
    }

    /// The admin listener, which exists before the store, and the parts that its routes need both before and after the
    /// store is open.
    private struct AdminFront {
        let hosts: AllowedHosts
        let token: Secret?
        let exposition: MetricsExposition
        let metrics: HTTPMetrics
        let accessLog: AccessLog
        let tracer: RequestTracer
        let responder: AdminResponder
        let server: HTTPServer
        let listener: ListenerService
        let forced = ForcedShutdown()

        init(
            _ configuration: GatewayConfiguration,
            token: Secret?,
            certificate: ListenerCertificate?,
            tracer: RequestTracer,
            clock: SystemWallClock,
            registry: PrometheusRegistry,
            metrics: GatewayMetrics,
            logger: Logger
        ) {
            let (host, port) = (configuration.admin.server.host, configuration.admin.server.port)
            self.hosts = AllowedHosts(configuration.admin.allowedHosts + [host])
            self.token = token
            self.exposition = MetricsExposition(contentType: PrometheusRegistry.contentType) { registry.renderBytes() }
            self.metrics = HTTPMetrics(metrics, listener: "admin")
            self.accessLog = AccessLog(logger: logger.part(.access), sink: LineAccessLog(beside: logger))
            self.tracer = tracer
            let starting = Listener.starting(
                hosts: self.hosts,
                exposition: self.exposition,
                clock: clock,
                metrics: self.metrics,
                accessLog: self.accessLog,
                tracer: self.tracer,
                logger: logger.part(.http)
            )
            self.responder = AdminResponder(starting)
            var server = HTTPServerConfiguration(
                "admin",
                configuration.admin.server,
                maxConnections: DescriptorPlan(configuration, limit: DescriptorPlan.currentLimit).adminConnections,
                certificate: certificate,
                // Requests that are refused before routing get the same answers as from the complete listener.
                serving: starting
            )
            server.bodyLimit = { _ in Administration.maxBodyBytes }
            self.server = HTTPServer(
                configuration: server,
                responder: self.responder,
                // The admin listener has its own loop, so that a long list of metrics never delays a send.
                eventLoopGroup: MultiThreadedEventLoopGroup(numberOfThreads: 1),
                logger: logger.part(.http)
            )
            self.listener = ListenerService(
                server: self.server,
                place: ("admin", host, port),
                readiness: nil,
                drain: ListenerService.Drain(grace: .zero, timeout: Gateway.adminDrainLimit, forced: self.forced)
            )
        }
    }

    /// Changes the directory. Only `dev` uses this, because it configures itself.
    package let administration: Administration
    package let dataListener: ListenerService
    package let adminListener: ListenerService
    package let readiness: Readiness
    let audit: AuditLog
    /// The process's id among the store's replicas. `nil` for a process that has its store to itself.
    let replica: ReplicaID?
    let reloadable: ConfigurationReloader.Parts
    /// The audit's second sink, if it is a file.
    let auditSinkFile: AuditSinkFile?
    private let drainLimit: Duration
    /// The services. Each service precedes those that depend on it. They stop in reverse order.
    let services: [NamedService]

    /// Opens the store and assembles the parts.
    ///
    /// Does not start the listeners, with one exception: for PostgreSQL, the admin listener answers probes while the
    /// start waits for the server. Without `tokenHosts`, the configuration's hosts may issue access tokens. Throws
    /// problems of the store, the secrets or the configuration, in words for an operator.
    package init(
        _ configuration: GatewayConfiguration,
        secrets: ServingSecrets,
        certificates: ListenerCertificates = ListenerCertificates(),
        tokenHosts: TokenHosts? = nil,
        stop: StopSignals? = nil,
        logger: Logger
    ) async throws {
        let masterKey = try MasterKey(secrets.masterKey, previous: secrets.previousMasterKey)
        let clock = SystemWallClock()
        let registry = PrometheusRegistry(
            descriptions: GatewayMetric.allCases.map(MetricDescription.init),
            processMetrics: ProcessMetrics()
        )
        let metrics = GatewayMetrics(factory: registry)
        metrics.gauge(.buildInfo, GatewayVersion.current).set(1)
        let tracing = TracingParts(configuration.tracing, metrics: metrics)

        let front = AdminFront(
            configuration,
            token: secrets.adminToken.map { Secret($0.revealed) },
            certificate: certificates.admin,
            tracer: tracing.tracer,
            clock: clock,
            registry: registry,
            metrics: metrics,
            logger: logger
        )
        if configuration.postgreSQL != nil { try await front.listener.listen() }
        let (database, closeStore) = try await configuration.openStore(
            announcing: masterKey.fingerprint,
            metrics: metrics,
            logger: logger
        )
        let replicaStore = SQLReplicaStore(database: database, masterKey: masterKey.fingerprint)
        let replicas = Replicas(
            id: ReplicaID(name: HostName.current, startedAt: clock.now()),
            store: replicaStore,
            // A process that has its store to itself reports no metrics of a fleet.
            metrics: database.isShared ? metrics : GatewayMetrics(),
            logger: logger.part(.state)
        )
        let leave: @Sendable () async -> Void = { try? await replicaStore.leave(replicas.id) }
        do {
            if database.isShared { stop?.beforeEnd(leave) }
            // The replica sends a heartbeat before anything is read, just as SQLite's file is locked before anything is
            // read. Only a replica with a heartbeat can begin an audit chain.
            if database.isShared { _ = try await replicaStore.heartbeat(of: replicas.id) }
            try await self.init(
                configuration,
                front,
                certificate: certificates.data,
                tokenHosts: tokenHosts,
                tracing: tracing,
                logger: logger,
                store: OpenStore(masterKey: masterKey, database: database, replicas: replicas, close: closeStore),
                clock: clock,
                metrics: metrics
            )
        } catch {
            // The replica does not serve, so it must not count as a live replica.
            if database.isShared { await leave() }
            throw error
        }
    }

    /// Assembles the parts over an open store.
    private init(
        _ configuration: GatewayConfiguration,
        _ front: AdminFront,
        certificate: ListenerCertificate?,
        tokenHosts: TokenHosts?,
        tracing: TracingParts,
        logger: Logger,
        store: OpenStore,
        clock: SystemWallClock,
        metrics: GatewayMetrics
    ) async throws {
        let (masterKey, database, replicas) = (store.masterKey, store.database, store.replicas)
        let auditStore = SQLAuditStore(database: database)
        let sealedSecrets = SQLSecretStore(database: database)
        let ownSecrets = try await GatewaySecrets(store: sealedSecrets, masterKey: masterKey)
        let sealed = Rewrapping(try await sealedSecrets.all(), under: masterKey)
        if let first = sealed.unopened.first {
            logger.error(
                "Some secrets in the store don't open with the given master keys; their tenants can't send.",
                metadata: ["secrets": .stringConvertible(sealed.unopened.count), "first": "\(first.name)"]
            )
        }
        if !sealed.exchanges.isEmpty {
            logger.notice("The store is still sealed with the previous master key; run fcm-gateway credential rewrap.")
        }
        let eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: configuration.eventLoops)
        let limits = try await LimiterParts(
            configuration,
            replicas: { replicas.aliveCount },
            eventLoops: eventLoops,
            metrics: metrics,
            logger: logger.part(.state)
        )
        let limiter = limits.limiter
        let plan = DescriptorPlan(configuration, limit: DescriptorPlan.currentLimit)
        let upstreamSettings = UpstreamSettings(
            configuration.upstream,
            tokenHosts: tokenHosts,
            client: try configuration.upstream.client(
                connections: plan.upstreamConnections,
                perLoop: plan.upstreamConnectionsPerLoop,
                proxyPassword: configuration.upstreamProxyPassword.map { Secret($0.revealed) }
            )
        )
        let upstream = FCMClient(
            settings: upstreamSettings,
            eventLoopGroup: eventLoops,
            clock: clock,
            metrics: metrics,
            logger: logger.part(.upstream)
        )
        let directory = try await Directory(
            store: SQLDirectoryStore(database: database, sealer: RowSealer(keyPepper: ownSecrets.keyPepper)),
            masterKey: masterKey,
            auditKey: ownSecrets.auditKey,
            defaultLimits: configuration.limits.defaults,
            maxStale: database.isShared ? configuration.store.maxStale : nil,
            observer: { upstream.keep($0.tenants) },
            metrics: metrics,
            logger: logger.part(.state)
        )

        let signer = try ownSecrets.auditSigner()
        let auditSealer = AuditSealer(auditKey: ownSecrets.auditKey)
        let auditAlarm = AuditAlarm(metrics: metrics)
        let checkpointer = AuditCheckpointer(
            store: auditStore,
            signer: signer,
            sealer: auditSealer,
            clock: clock,
            alarm: auditAlarm,
            metrics: metrics,
            logger: logger
        )
        self.auditSinkFile = configuration.auditSinkPath.map { AuditSinkFile(path: $0, name: HostName.current) }
        var sink: (any AuditSink)? = self.auditSinkFile
        if configuration.audit.sink == AuditLog.Configuration.sinkOutput { sink = AuditSinkOutput() }
        let leadership: SQLLeadership? =
            database.isShared ? SQLLeadership(database: database, logger: logger.part(.audit)) : nil
        let sharing: AuditSharing? =
            database.isShared ? AuditSharing(replica: replicas.id, registry: auditStore) : nil
        var leader: AuditLeader?
        if let leadership {
            let closer = AuditChainCloser(
                store: auditStore,
                registry: auditStore,
                replicas: replicas,
                sealer: auditSealer,
                clock: clock,
                metrics: metrics,
                logger: logger.part(.audit)
            )
            leader = AuditLeader(leadership: leadership, closer: closer, logger: logger.part(.audit))
        }
        let checkpoints = AuditCheckpointService(
            checkpointer: checkpointer,
            feeder: sink.map { sink in
                AuditSinkFeeder(
                    sink: sink,
                    name: HostName.current,
                    store: auditStore,
                    publicKey: signer.publicKey,
                    clock: clock,
                    metrics: metrics,
                    logger: logger
                )
            },
            interval: configuration.audit.checkpointInterval,
            leader: leader,
            metrics: metrics
        )
        let audit = AuditLog(
            store: auditStore,
            spool: AuditSpool(
                file: try SpoolFile(in: configuration.spoolDirectory),
                auditKey: ownSecrets.auditKey,
                maxBytes: configuration.audit.spoolBytes
            ),
            sealer: auditSealer,
            clock: clock,
            configuration: configuration.audit,
            metrics: metrics,
            logger: logger.part(.audit),
            afterCheckpoint: try await checkpointer.prepare(),
            sharing: sharing
        )
        let retention = AuditRetentionService(
            store: auditStore,
            signer: signer,
            sealer: auditSealer,
            audit: audit,
            checkpointer: checkpointer,
            clock: clock,
            retention: .seconds(configuration.audit.retentionDays * 86_400),
            leadership: leadership,
            alarm: auditAlarm,
            metrics: metrics,
            logger: logger
        )
        let retired = RetiredTokens(
            store: SQLRetiredTokenStore(database: database),
            clock: clock,
            metrics: metrics,
            logger: logger.part(.state),
            profiles: { Array(directory.snapshot.tenants.values) }
        )
        try await retired.load()
        let leases =
            database.isShared
            ? LeaseTerms(
                duration: configuration.store.lease,
                attemptTimeout: { upstreamSettings.attemptTimeout.current }
            ) : nil
        let groupStore = SQLGroupStore(database: database, owner: replicas.id, leases: leases)
        let groups = DeviceGroups(
            store: groupStore,
            upstream: upstream,
            limiter: limiter,
            audit: audit,
            clock: clock,
            leases: leases.map { GroupLeases(store: groupStore, terms: $0, metrics: metrics) },
            metrics: metrics
        )
        try await groups.known.load()
        let pepper = APIKey.Pepper(ownSecrets.keyPepper)
        self.administration = Administration(
            directory: directory,
            audit: audit,
            masterKey: masterKey,
            pepper: pepper,
            clock: clock
        )
        self.readiness = Readiness(audit: audit)
        self.audit = audit
        self.replica = database.isShared ? replicas.id : nil

        let dataMetrics = HTTPMetrics(metrics, listener: "data")
        let gate = LoadGate(
            limits: LoadShedder.Limits(maxInFlight: configuration.http.maxInFlight, maxLag: configuration.http.maxLag),
            listCalls: configuration.upstream.fanOut,
            subscriptionCalls: configuration.upstream.topicAPI == .v1 ? configuration.upstream.fanOut : 1,
            metrics: metrics
        )
        let pipeline = SendPipeline(
            retired: retired,
            limiter: limiter,
            upstream: upstream,
            audit: audit,
            clock: clock,
            metrics: metrics,
            groups: groups
        )
        let idempotent = IdempotentSends(
            pipeline: pipeline,
            store: SQLIdempotencyStore(database: database, owner: replicas.id, leases: leases),
            clock: clock,
            leases: leases,
            metrics: metrics,
            logger: logger.part(.state)
        )
        var batchConfiguration = configuration.batches
        batchConfiguration.callsPerList = configuration.upstream.fanOut
        let batchStore = SQLBatchStore(
            database: database,
            bounds: batchConfiguration.bounds,
            owner: replicas.id,
            leases: leases ?? .unshared
        )
        let batchRunner = BatchRunner(
            store: batchStore,
            sends: idempotent,
            limiter: limiter,
            directory: directory,
            configuration: batchConfiguration,
            leases: leases ?? .unshared,
            isShared: database.isShared,
            replicas: { database.isShared ? replicas.aliveCount : 1 },
            // A replica that drains, or that can't record what it sends, begins nothing more.
            room: { [readiness = self.readiness] in
                readiness.refusal(at: .now) == nil ? configuration.http.maxInFlight - gate.inFlight : 0
            },
            clock: clock,
            executors: eventLoops.makeIterator().map { EventLoopTaskExecutor(eventLoop: $0) },
            pause: { upstream.pause($0, for: $1) },
            metrics: metrics,
            logger: logger.part(.state),
            decode: BatchMessage.command
        )
        let batches = Batches(
            store: batchStore,
            runner: batchRunner,
            pipeline: pipeline,
            bounds: batchConfiguration.bounds,
            retention: .seconds(batchConfiguration.retentionDays * 86_400),
            decode: BatchMessage.command
        )
        database.whenNotified {
            directory.hint()
            batchRunner.wake()
        }
        let auditAccess = AuditAccess(store: auditStore, log: audit, limiter: limiter, clock: clock)
        let data = Listener.data(
            authenticator: Authenticator(directory: directory, pepper: pepper),
            pipeline: pipeline,
            idempotent: idempotent,
            batches: batches,
            topics: TopicPipeline(limiter: limiter, upstream: upstream, audit: audit, clock: clock, metrics: metrics),
            groups: groups,
            retired: RetiredTokenAccess(retired: retired, audit: audit, clock: clock),
            audit: auditAccess,
            auditCursors: AuditQuery.CursorSealer(auditKey: ownSecrets.auditKey),
            clock: clock,
            metrics: dataMetrics,
            gate: gate,
            requestDeadline: upstreamSettings.requestDeadline,
            accessLog: front.accessLog,
            tracer: front.tracer,
            logger: logger.part(.http)
        )
        let adminTokens = AdminTokens(
            configured: front.token,
            store: SQLAdminTokenStore(database: database),
            pepper: pepper,
            audit: audit,
            clock: clock,
            maxStale: configuration.store.maxStale
        )
        try await adminTokens.requireAdmin()
        let history = ConsoleHistory(front.exposition)
        let console = Console(
            sessions: ConsoleSessions(
                tokens: adminTokens,
                store: SQLConsoleSessionStore(database: database),
                pepper: pepper,
                clock: clock,
                maxStale: configuration.store.maxStale
            ),
            history: history,
            limiter: limiter,
            whenRedisFails: limits.whenRedisFails,
            retired: retired,
            pipeline: pipeline
        )
        let admin = Listener.admin(
            hosts: front.hosts,
            tokens: adminTokens,
            administration: self.administration,
            prover: upstream,
            tokenHosts: upstreamSettings.tokenHosts,
            batches: batches,
            audit: auditAccess,
            auditCursors: AuditQuery.CursorSealer(auditKey: ownSecrets.auditKey),
            console: configuration.admin.servesConsole ? console : nil,
            manual: configuration.admin.docsDirectory,
            readiness: self.readiness,
            exposition: front.exposition,
            clock: clock,
            metrics: front.metrics,
            accessLog: front.accessLog,
            tracer: front.tracer,
            logger: logger.part(.http)
        )
        var dataConfiguration = HTTPServerConfiguration(
            "data",
            configuration.http.server,
            maxConnections: plan.dataConnections,
            certificate: certificate,
            serving: data
        )
        // A message has 4 KiB, plus its JSON envelope.
        dataConfiguration.uncountedBodyBytes = 8 * 1024
        dataConfiguration.measuresLag = true
        dataConfiguration.bodyLimit = data.bodyLimit(of:)
        dataConfiguration.leastBodyLimit = Listener.leastBodyLimit
        let dataServer = HTTPServer(
            configuration: dataConfiguration,
            responder: data,
            eventLoopGroup: eventLoops,
            logger: logger.part(.http)
        )
        let lastReload = metrics.gauge(.configLastReloadSuccessful)
        lastReload.set(1)
        self.dataListener = ListenerService(
            server: dataServer,
            place: ("http", configuration.http.server.host, configuration.http.server.port),
            readiness: self.readiness,
            drain: ListenerService.Drain(
                grace: configuration.http.drainGrace,
                timeout: configuration.http.shutdownTimeout,
                forced: front.forced,
                gauge: metrics.gauge(.draining)
            ),
            after: { await audit.whenOpen() }
        )
        self.adminListener = front.listener
        self.drainLimit = configuration.http.drainGrace + configuration.http.shutdownTimeout
        self.reloadable = ConfigurationReloader.Parts(
            directory: directory,
            dataServer: dataServer,
            adminServer: front.server,
            upstream: upstreamSettings,
            lastReload: lastReload
        )
        // The time shared by all services that may wait for an unreachable store.
        let closing = BoundedService.Time(limit: Self.storeLimit)
        func bounded(_ name: String, _ service: any Service) -> NamedService {
            NamedService(name, BoundedService(service: service, time: closing))
        }
        // A process that has its store to itself needs no heartbeat.
        let membership = database.isShared ? [bounded("replicas", replicas), bounded("groups", groups.known)] : []
        let foundations = [
            NamedService("second signal", ForcedShutdownService(forced: front.forced)),
            NamedService("store", closing: store.close),
        ]
        let parts = [
            bounded("directory", directory), bounded("audit checkpoints", checkpoints), bounded("audit", audit),
            bounded("audit retention", retention), bounded("retired tokens", retired),
        ]
        let surface = [
            NamedService("upstream", closing: upstream.shutdown),
            NamedService("access tokens", upstream.tokens),
            NamedService("idempotent sends", idempotent),
            NamedService("batches", batchRunner),
            NamedService("console history", ConsoleHistoryService(history: history)),
            NamedService("admin listener", self.adminListener),
            NamedService("data listener", self.dataListener),
        ]
        let exporters = try tracing.services(instance: self.replica?.text, logger: logger)
        front.responder.open(admin)
        self.services = exporters + foundations + limits.services + membership + parts + surface
    }

    /// The time for operators' running requests when the admin listener ends.
    private static let adminDrainLimit = Duration.seconds(5)
    /// The time in which the parts that write to the store must end. They have less if the group is cancelled first.
    private static let storeLimit = Duration.seconds(15)
    /// The time that is left for everything behind the listeners if the listeners use all of their own time.
    private static let closingLimit = Duration.seconds(5)

    /// Creates a group that runs this gateway and other services, which end first. Does not start the group.
    ///
    /// At shutdown the services end in reverse order, each within its limit:
    ///
    ///     others -> data listener (grace + timeout) -> admin listener (5 s) -> everything else
    ///
    /// Example with the defaults: 30 s for the data listener, 5 s for the admin listener, at least 5 s for the rest.
    /// After 40 s the group is cancelled, and 5 s later the process ends.
    package func group(
        with others: [NamedService] = [],
        stoppedBy signals: [UnixSignal] = [.sigterm, .sigint],
        logger: Logger
    ) -> ServiceGroup {
        // A service may fail, for example if a listener's port is taken. Even then the audit's writer must end in
        // order, because only an orderly end closes the chain.
        let services = (self.services + others)
            .map {
                ServiceGroupConfiguration.ServiceConfiguration(
                    service: $0,
                    failureTerminationBehavior: .gracefullyShutdownGroup
                )
            }
        var configuration = ServiceGroupConfiguration(
            services: services,
            gracefulShutdownSignals: signals,
            logger: logger
        )
        configuration.maximumGracefulShutdownDuration = self.drainLimit + Self.adminDrainLimit + Self.closingLimit
        configuration.maximumCancellationDuration = .seconds(5)
        return ServiceGroup(configuration: configuration)
    }
}

/// Reads the figures of the console's charts.
private struct ConsoleHistoryService: Service {
    let history: ConsoleHistory

    func run() async throws { await cancelWhenGracefulShutdown { await self.history.run() } }
}

extension MetricDescription {
    init(_ metric: GatewayMetric) {
        let row = metric.row
        switch row.kind {
        case .counter: self.init(name: metric.rawValue, help: row.help, kind: .counter)
        case .gauge: self.init(name: metric.rawValue, help: row.help, kind: .gauge)
        case .histogram(let seconds):
            self.init(name: metric.rawValue, help: row.help, kind: .histogram, buckets: seconds)
        }
    }
}

/// The version of this build, as in `--version` and `build_info`.
package enum GatewayVersion {
    package static let current = "0.1.0"
}
