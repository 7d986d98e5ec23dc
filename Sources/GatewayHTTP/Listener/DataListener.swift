package import EventLoopHTTP
package import GatewayCore
package import Logging

/// The surface for tenants' services.
package enum DataListener {
    /// What the surface needs.
    package struct Dependencies: Sendable {
        /// Finds out who calls.
        package var authenticator: Authenticator
        /// Sends messages.
        package var pipeline: SendPipeline
        /// Sends messages that carry an idempotency key.
        package var keyed: KeyedSends
        /// Tenants' device groups.
        package var groups: DeviceGroups
        /// Shows the retired tokens.
        package var retired: RetiredTokenAccess
        /// Holds the audit's records.
        package var audit: any AuditStore
        /// Seals the cursors of its lists.
        package var auditCursors: AuditCursorSealer
        /// Charges those who read the audit.
        package var limiter: any RateLimiter
        /// Tells the time.
        package var clock: any WallClock
        /// Measures requests.
        package var metrics: HTTPMetrics
        /// Keeps from taking on too much.
        package var gate: LoadGate
        /// How long a caller waits at most.
        package var requestDeadline: DurationSetting
        /// Keeps subscriptions to topics.
        package var topics: TopicPipeline
        /// Where messages go, for explanations.
        package var upstreams: UpstreamEndpoints
        /// Writes a line for every request; `nil` for a log of the listener's own logger.
        package var accessLog: AccessLog?
        /// Finds out to which traces requests belong.
        package var tracer: RequestTracer

        /// The parts of a data listener.
        package init(
            authenticator: Authenticator,
            pipeline: SendPipeline,
            keyed: KeyedSends,
            topics: TopicPipeline,
            groups: DeviceGroups,
            retired: RetiredTokenAccess,
            audit: any AuditStore,
            auditCursors: AuditCursorSealer,
            limiter: any RateLimiter,
            clock: any WallClock,
            metrics: HTTPMetrics,
            gate: LoadGate,
            requestDeadline: DurationSetting,
            upstreams: UpstreamEndpoints = UpstreamEndpoints(),
            accessLog: AccessLog? = nil,
            tracer: RequestTracer = RequestTracer()
        ) {
            self.authenticator = authenticator
            self.pipeline = pipeline
            self.keyed = keyed
            self.topics = topics
            self.groups = groups
            self.retired = retired
            self.audit = audit
            self.auditCursors = auditCursors
            self.limiter = limiter
            self.clock = clock
            self.metrics = metrics
            self.gate = gate
            self.requestDeadline = requestDeadline
            self.upstreams = upstreams
            self.accessLog = accessLog
            self.tracer = tracer
        }
    }

    /// The most that the body of a send or of a list of subscriptions may have, in bytes.
    package static let maxSendBodyBytes = 1024 * 1024
    /// The most that any other body may have, in bytes.
    package static let maxOtherBodyBytes = 64 * 1024

    /// The bound of a request's body, known before the first byte of it is read.
    package static func bodyLimit(of head: HTTPRequestHead) -> Int {
        let path = head.pathBytes
        let sends =
            SendRoute.tenant(in: path) != nil || LegacyFacade.serves(path) || V1Facade.project(in: path) != nil
            || TopicFacade.takesList(at: path) || Self.takesList(at: path)
        return sends ? Self.maxSendBodyBytes : Self.maxOtherBodyBytes
    }

    /// Whether a path is that of a routed request which may list as many devices as a send.
    private static func takesList(at path: [UInt8]) -> Bool {
        guard path.starts(with: Self.tenantsPrefix) else { return false }
        let path = path.prefix { $0 != UInt8(ascii: "?") }
        return Self.listSuffixes.contains { path.count > $0.count && path.suffix($0.count).elementsEqual($0) }
    }

    private static let tenantsPrefix = Array("/v1/tenants/".utf8)
    private static let listSuffixes = ["/messages/explain", "/subscriptions", "/subscriptions/remove"]
        .map { Array($0.utf8) }

    /// Builds what answers requests.
    package static func responder(_ dependencies: Dependencies, logger: Logger) -> DataResponder {
        let accessLog = dependencies.accessLog ?? AccessLog(logger: logger)
        let authentication = AuthenticationMiddleware(
            authenticator: dependencies.authenticator,
            clock: dependencies.clock,
            metrics: dependencies.metrics,
            logger: logger
        )
        let routing = ListenerRouting(
            clock: dependencies.clock,
            metrics: dependencies.metrics,
            guards: [
                DeadlineMiddleware(limit: dependencies.requestDeadline), authentication,
                LoadMiddleware(gate: dependencies.gate),
            ],
            open: [DescriptionController(description: .gateway).endpoints],
            guarded: [
                AuditController(
                    audit: dependencies.audit,
                    limiter: dependencies.limiter,
                    clock: dependencies.clock,
                    cursors: dependencies.auditCursors
                )
                .endpoints,
                RetiredTokensController(retired: dependencies.retired).endpoints,
                ExplainController(
                    pipeline: dependencies.pipeline,
                    groups: dependencies.groups,
                    upstreams: dependencies.upstreams,
                    clock: dependencies.clock
                )
                .endpoints,
                SubscriptionsController(topics: dependencies.topics, gate: dependencies.gate).endpoints,
                DeviceGroupsController(groups: dependencies.groups).endpoints,
            ],
            direct: [SendRoute.template, LegacyFacade.template, V1Facade.template],
            logger: logger,
            accessLog: accessLog,
            tracer: dependencies.tracer
        )
        let sending = SendRoute(
            authentication: authentication,
            pipeline: dependencies.pipeline,
            keyed: KeyedExchange(sends: dependencies.keyed),
            clock: dependencies.clock,
            metrics: dependencies.metrics,
            gate: dependencies.gate,
            accessLog: accessLog,
            tracer: dependencies.tracer,
            rendering: routing.rendering,
            requestDeadline: dependencies.requestDeadline
        )
        let exchange = FacadeExchange(
            authentication: authentication,
            pipeline: dependencies.pipeline,
            keyed: KeyedExchange(sends: dependencies.keyed),
            clock: dependencies.clock,
            metrics: dependencies.metrics,
            gate: dependencies.gate,
            accessLog: accessLog,
            tracer: dependencies.tracer,
            requestDeadline: dependencies.requestDeadline
        )
        return DataResponder(
            sending: sending,
            legacy: LegacyFacade(exchange: exchange),
            v1: V1Facade(exchange: exchange),
            topics: TopicFacade(exchange: exchange, topics: dependencies.topics),
            groups: GroupFacade(exchange: exchange, groups: dependencies.groups),
            routed: routing.responder,
            exchange: exchange
        )
    }
}
