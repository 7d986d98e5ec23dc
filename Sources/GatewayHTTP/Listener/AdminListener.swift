package import GatewayCore
package import Logging

/// The surface for operators, probes and Prometheus.
package enum AdminListener {
    /// What the surface needs.
    package struct Dependencies: Sendable {
        /// The operators' token.
        package var token: AdminToken
        /// Changes the directory.
        package var administration: Administration
        /// Proves credentials.
        package var prover: any CredentialProver
        /// Where uploaded service accounts may ask for access tokens.
        package var tokenHosts: Setting<TokenHosts>
        /// Holds the audit's records.
        package var audit: any AuditStore
        /// Seals the cursors of its lists.
        package var auditCursors: AuditCursorSealer
        /// Whether traffic is welcome.
        package var readiness: Readiness
        /// Renders the metrics.
        package var exposition: MetricsExposition
        /// Tells the time.
        package var clock: any WallClock
        /// Measures requests.
        package var metrics: HTTPMetrics
        /// Writes a line for every request; `nil` for a log of the listener's own logger.
        package var accessLog: AccessLog?
        /// Finds out to which traces requests belong.
        package var tracer: RequestTracer
        /// Waits before a wrong token is answered.
        package var pause: @Sendable () async -> Void

        /// The parts of an admin listener.
        package init(
            token: AdminToken,
            administration: Administration,
            prover: any CredentialProver,
            tokenHosts: Setting<TokenHosts>,
            audit: any AuditStore,
            auditCursors: AuditCursorSealer,
            readiness: Readiness,
            exposition: MetricsExposition,
            clock: any WallClock,
            metrics: HTTPMetrics,
            accessLog: AccessLog? = nil,
            tracer: RequestTracer = RequestTracer(),
            pause: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .milliseconds(250)) }
        ) {
            self.token = token
            self.administration = administration
            self.prover = prover
            self.tokenHosts = tokenHosts
            self.audit = audit
            self.auditCursors = auditCursors
            self.readiness = readiness
            self.exposition = exposition
            self.clock = clock
            self.metrics = metrics
            self.accessLog = accessLog
            self.tracer = tracer
            self.pause = pause
        }
    }

    /// Builds what answers requests.
    ///
    /// Probes and Prometheus need no token: they carry none, and what they read names tenants at most. The description is
    /// no secret.
    package static func responder(_ dependencies: Dependencies, logger: Logger) -> RoutedResponder {
        let administration = dependencies.administration
        let routing = ListenerRouting(
            clock: dependencies.clock,
            metrics: dependencies.metrics,
            guards: [
                AdminAuthenticationMiddleware(
                    token: dependencies.token,
                    metrics: dependencies.metrics,
                    pause: dependencies.pause
                )
            ],
            open: [
                HealthController(readiness: dependencies.readiness).endpoints,
                MetricsController(exposition: dependencies.exposition).endpoints,
                DescriptionController(description: .admin).endpoints,
            ],
            guarded: [
                TenantsController(administration: administration).endpoints,
                CredentialsController(
                    administration: administration,
                    prover: dependencies.prover,
                    tokenHosts: dependencies.tokenHosts
                )
                .endpoints,
                KeysController(administration: administration).endpoints,
                LimitsController(administration: administration).endpoints,
                AdminAuditController(
                    audit: dependencies.audit,
                    administration: administration,
                    cursors: dependencies.auditCursors
                )
                .endpoints,
            ],
            logger: logger,
            accessLog: dependencies.accessLog ?? AccessLog(logger: logger),
            tracer: dependencies.tracer
        )
        return routing.responder
    }
}
