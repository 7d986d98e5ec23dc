package import EventLoopHTTP
import FCMModel
package import GatewayCore
import HTTPTypes
package import Logging
import NIOCore

/// Answers the requests to a listener: finds the route of each, and passes it through the pipeline.
package struct Listener: HTTPServerResponder {
    let routes: RouteTable
    let pipeline: RequestPipeline
    let guide: ListenerGuide
    /// The hosts that are served; `nil` for all.
    var hosts: AllowedHosts?
    /// True while most routes are missing. An unknown address may exist soon.
    var isStarting = false

    /// No route has a smaller limit of its body's size.
    package static let leastBodyLimit = Route.smallBody

    /// Returns the body's size limit before the first byte of the body is read.
    package func bodyLimit(of head: HTTPRequestHead) -> Int {
        self.routes.rowAlone(at: head.pathBytes)?.route.bodyLimit ?? Route.smallBody
    }

    package func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        guard self.hosts?.admits(request.head.authority) ?? true else {
            return self.pipeline.refuse(misdirected: request)
        }
        guard let (row, parameters) = self.routes.row(at: request.head.pathBytes) else {
            return self.refuse(unknown: request)
        }
        for index in row.endpoints.indices where row.endpoints[index].method == request.head.method {
            return await row.endpoints[index].endpoint.respond(to: request, parameters, through: self.pipeline)
        }
        return self.pipeline.refuse(request, row)
    }

    @inline(never)  // Keeps the frame small.
    private func refuse(unknown request: HTTPServerRequest) -> HTTPServerResponse {
        let refusal =
            self.isStarting
            ? Refusal(.overloaded, Readiness.Refusal.storeAwaited.rawValue, retryAfter: 5)
            : self.guide.refusal(of: request.head.pathBytes)
        return self.pipeline.refuse(unknown: request, refusal)
    }
}

extension Listener {
    package static func data(
        authenticator: Authenticator,
        pipeline: SendPipeline,
        idempotent: IdempotentSends,
        batches: Batches,
        topics: TopicPipeline,
        groups: DeviceGroups,
        retired: RetiredTokenAccess,
        audit: AuditAccess,
        auditCursors: AuditQuery.CursorSealer,
        clock: any WallClock,
        metrics: HTTPMetrics,
        gate: LoadGate,
        requestDeadline: DurationSetting,
        accessLog: AccessLog? = nil,
        tracer: RequestTracer = RequestTracer(),
        logger: Logger
    ) -> Listener {
        let sender = MessageSender(pipeline: pipeline, idempotent: idempotent)
        var endpoints: [any Endpoint] = [
            SendMessage(sender: sender, batches: batches), SendLegacyMessage(sender: sender),
            SendV1Message(sender: sender),
        ]
        endpoints += Subscriptions.endpoints(topics)
        endpoints += InstanceIDSubscriptions.endpoints(topics)
        endpoints += V1Subscriptions.endpoints(topics)
        endpoints += DeviceGroupRoutes(groups: groups).endpoints
        endpoints += [LegacyGroups(.get, groups), LegacyGroups(.post, groups)]
        endpoints += AuditRoutes(audit: audit, cursors: auditCursors).endpoints
        endpoints += RetiredTokenRoutes(retired: retired).endpoints
        endpoints += BatchRoutes(batches: batches).endpoints
        endpoints += ExplainRoutes(pipeline: pipeline).endpoints
        endpoints += DescriptionRoutes(description: .gatewayDescription, guide: .data).endpoints
        return Listener(
            routes: RouteTable(endpoints),
            pipeline: RequestPipeline(
                callers: .tenants(authenticator),
                refusals: AccessRefusals(sends: pipeline, topics: topics, groups: groups),
                gate: gate,
                requestDeadline: requestDeadline,
                clock: clock,
                metrics: metrics,
                accessLog: accessLog ?? AccessLog(logger: logger),
                tracer: tracer,
                logger: logger
            ),
            guide: .data
        )
    }

    /// The admin surface while the gateway waits for its store; none of it needs a token.
    package static func starting(
        hosts: AllowedHosts,
        exposition: MetricsExposition,
        clock: any WallClock,
        metrics: HTTPMetrics,
        accessLog: AccessLog,
        tracer: RequestTracer,
        logger: Logger
    ) -> Listener {
        Listener(
            routes: RouteTable(ProbeRoutes(refusal: { .storeAwaited }, exposition: exposition).endpoints),
            pipeline: RequestPipeline(
                callers: .unknown,
                refusals: nil,
                gate: nil,
                requestDeadline: nil,
                clock: clock,
                metrics: metrics,
                accessLog: accessLog,
                tracer: tracer,
                logger: logger
            ),
            guide: .admin,
            hosts: hosts,
            isStarting: true
        )
    }

    /// The surface for operators, probes and Prometheus; the pause precedes the answer to a wrong token.
    package static func admin(
        hosts: AllowedHosts,
        tokens: AdminTokens,
        administration: Administration,
        prover: any CredentialProver,
        tokenHosts: Setting<TokenHosts>,
        batches: Batches,
        audit: AuditAccess,
        auditCursors: AuditQuery.CursorSealer,
        console: Console? = nil,
        manual folder: String? = nil,
        readiness: Readiness,
        exposition: MetricsExposition,
        clock: any WallClock,
        metrics: HTTPMetrics,
        accessLog: AccessLog? = nil,
        tracer: RequestTracer = RequestTracer(),
        pause: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .milliseconds(250)) },
        logger: Logger
    ) -> Listener {
        var endpoints = ProbeRoutes(refusal: { readiness.refusal(at: .now) }, exposition: exposition).endpoints
        endpoints += DescriptionRoutes(description: .adminDescription, guide: .admin).endpoints
        if let folder { endpoints += ManualRoutes(folder: folder).endpoints }
        endpoints += TenantRoutes(administration: administration).endpoints
        endpoints += CredentialRoutes(administration: administration, prover: prover, tokenHosts: tokenHosts).endpoints
        endpoints += KeyRoutes(administration: administration).endpoints
        endpoints += LimitRoutes(administration: administration).endpoints
        endpoints += AdminBatchRoutes(batches: batches).endpoints
        endpoints += AdminTokenRoutes(tokens: tokens).endpoints
        endpoints += AdminAuditRoutes(audit: audit, administration: administration, cursors: auditCursors).endpoints
        let refusals = AccessRefusals(administration)
        if let console {
            endpoints +=
                ConsolePages(
                    console: console,
                    tokens: tokens,
                    refusals: refusals,
                    administration: administration,
                    batches: batches,
                    audit: audit,
                    cursors: auditCursors,
                    exposition: exposition,
                    metrics: metrics,
                    readiness: readiness,
                    pause: pause
                )
                .endpoints
        }
        return Listener(
            routes: RouteTable(endpoints),
            pipeline: RequestPipeline(
                callers: .operators(tokens, console?.sessions, pause: pause),
                refusals: refusals,
                gate: nil,
                requestDeadline: nil,
                clock: clock,
                metrics: metrics,
                accessLog: accessLog ?? AccessLog(logger: logger),
                tracer: tracer,
                logger: logger
            ),
            guide: .admin,
            hosts: hosts
        )
    }
}

/// The admin listener's surface, which is complete once the gateway is assembled.
package struct AdminResponder: HTTPServerResponder {
    private let listener: Setting<Listener>

    /// Until ``open(_:)``, serves probes and Prometheus and answers everything else with 503, because the gateway may wait for
    /// its store.
    package init(_ starting: Listener) {
        self.listener = Setting(starting)
    }

    package func open(_ whole: Listener) { self.listener.change(to: whole) }

    package func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        let listener = self.listener.current
        // Probes and Prometheus do not wait for the store, and neither does the token of the configuration.
        if case .operators(let tokens, let sessions, _) = listener.pipeline.callers,
            let credential = listener.routes.rowAlone(at: request.head.pathBytes)?.route.credential,
            let given = credential.bytes(in: request)
        {
            if credential == .session {
                await sessions?.refresh(given, isUse: request.head.fields[.consoleRefresh] == nil)
            } else {
                await tokens.refresh(for: given)
            }
        }
        return await listener.respond(to: request)
    }
}

/// The hosts that requests to a listener may name: addresses, `localhost`, and the operator's names.
///
/// This prevents DNS rebinding: a page in an operator's browser can point its own name at this machine, then read
/// whatever needs no token. Such requests name the page's host, and a server answers 421 for a host that it does not
/// serve (RFC 9110, 7.4). Addresses are allowed, because rebinding needs a name.
/// Requests without a host (HTTP/1.0) are allowed, because browsers do not send them.
package struct AllowedHosts: Sendable {
    private let names: Set<String>

    package init(_ names: [String]) {
        self.names = Set(names.map { $0.lowercased() }).union(["localhost"])
    }

    /// True if a host is allowed. Ignores its port and letter case.
    func admits(_ authority: String?) -> Bool {
        guard let authority, !authority.isEmpty else { return true }
        if authority.hasPrefix("[") {
            return Self.isAddress(authority.dropFirst().prefix { $0 != "]" })
        }
        let host = authority.prefix { $0 != ":" }
        return self.names.contains(host.lowercased()) || Self.isAddress(host)
    }

    private static func isAddress(_ text: Substring) -> Bool {
        (try? SocketAddress(ipAddress: String(text), port: 0)) != nil
    }
}

/// Refusals by the server before a request reaches a route: in the gateway's words, counted and logged.
extension Listener {
    /// The answer to a request that never reached a route.
    ///
    /// It gets a new id: such requests are mostly malformed, so their own is not read.
    package func response(to refusal: HTTPServerRefusal, _ request: HTTPRefusedRequest) -> HTTPServerResponse {
        var response = self.response(to: refusal)
        let requestID = UUIDv7.generate(at: self.pipeline.clock.now())
        response.headers.append(.requestID, requestID)
        self.pipeline.accessLog.write(
            AccessLog.Entry(
                requestID: requestID,
                method: request.head.map { HTTPMetrics.label(of: $0.method.rawValue) } ?? "none",
                status: response.status.code,
                code: response.code,
                remoteAddress: request.remoteAddress,
                bytesIn: 0,
                bytesOut: response.body.readableBytes,
                duration: .zero,
                isRefusal: true
            ),
            status: response.status.code,
            isQuiet: refusal.row.isShed
        )
        return response
    }

    private func response(to refusal: HTTPServerRefusal) -> HTTPServerResponse {
        let row = refusal.row
        self.pipeline.metrics.rejected(row.reason)
        if case .tooManyBufferedBytes(let path) = refusal, let gate = self.pipeline.gate {
            return gate.answer(.bufferedBytes, in: self.routes.rowAlone(at: path)?.route.dialect ?? .rest)
        }
        // Some protocol faults have their own status instead of 400.
        return Refusal(row.code, refusal.reason).response(status: refusal.status)
    }

    package func note(_ reason: HTTPServerCloseReason) {
        self.pipeline.metrics.closed(reason)
    }
}

extension HTTPServerRefusal {
    /// The code and the counter of a refusal; `isShed` is true if only load caused it, not the request.
    fileprivate var row: (code: OutcomeCode, reason: HTTPMetrics.Rejection, isShed: Bool) {
        switch self {
        case .badRequest: (.badRequest, .badRequest, false)
        case .uriTooLong: (.uriTooLong, .uriTooLong, false)
        case .headerTooLarge: (.headerTooLarge, .headerTooLarge, false)
        case .bodyTooLarge: (.bodyTooLarge, .bodyTooLarge, false)
        case .headTimeout: (.requestTimeout, .headTimeout, false)
        case .bodyTimeout: (.requestTimeout, .bodyTimeout, false)
        case .unsupportedTransferEncoding: (.badRequest, .transferEncoding, false)
        case .httpVersionNotSupported: (.badRequest, .httpVersion, false)
        case .expectationFailed: (.badRequest, .expectation, false)
        case .tooManyConnections: (.overloaded, .tooManyConnections, true)
        case .tooManyBufferedBytes: (.overloaded, .tooManyBufferedBytes, true)
        }
    }
}
