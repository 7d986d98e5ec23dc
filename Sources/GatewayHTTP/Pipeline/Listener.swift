package import EventLoopHTTP
import FCMModel
package import GatewayCore
import HTTPTypes
package import Logging
import NIOCore

/// Answers on a listener: finds a request's route, and takes the request through the pipeline.
package struct Listener: HTTPServerResponder {
    let routes: RouteTable
    let pipeline: RequestPipeline

    /// The bound of a request's body, known before the first byte of it is read.
    package func bodyLimit(of head: HTTPRequestHead) -> Int {
        self.routes.rowAlone(at: head.pathBytes)?.route.bodyLimit ?? Route.smallBody
    }

    /// Answers a request.
    package func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        guard let (row, parameters) = self.routes.row(at: request.head.pathBytes) else {
            return self.pipeline.refuse(request, nil)
        }
        for index in row.endpoints.indices where row.endpoints[index].method == request.head.method {
            return await row.endpoints[index].endpoint.respond(to: request, parameters, through: self.pipeline)
        }
        return self.pipeline.refuse(request, row)
    }
}

extension Listener {
    /// The surface for tenants' services.
    package static func data(
        authenticator: Authenticator,
        pipeline: SendPipeline,
        idempotent: IdempotentSends,
        topics: TopicPipeline,
        groups: DeviceGroups,
        retired: RetiredTokenAccess,
        audit: AuditAccess,
        auditCursors: AuditCursorSealer,
        clock: any WallClock,
        metrics: HTTPMetrics,
        gate: LoadGate,
        requestDeadline: DurationSetting,
        upstreams: UpstreamEndpoints = UpstreamEndpoints(),
        accessLog: AccessLog? = nil,
        tracer: RequestTracer = RequestTracer(),
        logger: Logger
    ) -> Listener {
        let sender = MessageSender(pipeline: pipeline, idempotent: idempotent)
        var endpoints: [any Endpoint] = [
            SendMessage(sender: sender), SendLegacyMessage(sender: sender), SendV1Message(sender: sender),
        ]
        endpoints += Subscriptions.endpoints(topics)
        endpoints += InstanceIDSubscriptions.endpoints(topics)
        endpoints += V1Subscriptions.endpoints(topics)
        endpoints += DeviceGroupRoutes(groups: groups).endpoints
        endpoints += [LegacyGroups(.get, groups), LegacyGroups(.post, groups)]
        endpoints += AuditRoutes(audit: audit, cursors: auditCursors).endpoints
        endpoints += RetiredTokenRoutes(retired: retired).endpoints
        endpoints += ExplainRoutes(pipeline: pipeline, groups: groups, upstreams: upstreams, clock: clock).endpoints
        endpoints += DescriptionRoutes(description: .gateway).endpoints
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
            )
        )
    }

    /// The surface for operators, probes and Prometheus; the pause comes before the answer to a wrong token.
    package static func admin(
        token: AdminToken,
        administration: Administration,
        prover: any CredentialProver,
        tokenHosts: Setting<TokenHosts>,
        audit: AuditAccess,
        auditCursors: AuditCursorSealer,
        readiness: Readiness,
        exposition: MetricsExposition,
        clock: any WallClock,
        metrics: HTTPMetrics,
        accessLog: AccessLog? = nil,
        tracer: RequestTracer = RequestTracer(),
        pause: @escaping @Sendable () async -> Void = { try? await Task.sleep(for: .milliseconds(250)) },
        logger: Logger
    ) -> Listener {
        var endpoints = ProbeRoutes(readiness: readiness, exposition: exposition).endpoints
        endpoints += DescriptionRoutes(description: .admin).endpoints
        endpoints += TenantRoutes(administration: administration).endpoints
        endpoints += CredentialRoutes(administration: administration, prover: prover, tokenHosts: tokenHosts).endpoints
        endpoints += KeyRoutes(administration: administration).endpoints
        endpoints += LimitRoutes(administration: administration).endpoints
        endpoints += AdminAuditRoutes(audit: audit, administration: administration, cursors: auditCursors).endpoints
        return Listener(
            routes: RouteTable(endpoints),
            pipeline: RequestPipeline(
                callers: .operators(token, pause: pause),
                refusals: AccessRefusals(administration),
                gate: nil,
                requestDeadline: nil,
                clock: clock,
                metrics: metrics,
                accessLog: accessLog ?? AccessLog(logger: logger),
                tracer: tracer,
                logger: logger
            )
        )
    }
}

/// What the server refuses before a request reaches a route, in the gateway's words, counted and logged.
extension Listener {
    /// The answer to a request that never reached a route.
    ///
    /// Its own id is not looked for: what is refused here is mostly malformed.
    package func response(to refusal: HTTPServerRefusal, _ request: HTTPRefusedRequest) -> HTTPServerResponse {
        var response = self.response(to: refusal)
        let requestID = UUIDv7.generate(at: self.pipeline.clock.now())
        response.headers.append(.requestID, requestID)
        self.pipeline.accessLog.write(
            AccessLogEntry(
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
            isShed: refusal.isUnderLoad
        )
        return response
    }

    private func response(to refusal: HTTPServerRefusal) -> HTTPServerResponse {
        let code: OutcomeCode =
            switch refusal {
            case .badRequest, .unsupportedTransferEncoding, .httpVersionNotSupported, .expectationFailed: .badRequest
            case .uriTooLong: .uriTooLong
            case .headerTooLarge: .headerTooLarge
            case .bodyTooLarge: .bodyTooLarge
            case .headTimeout, .bodyTimeout: .requestTimeout
            case .tooManyConnections, .tooManyBufferedBytes: .overloaded
            }
        self.pipeline.metrics.rejected(reason: Self.reason(of: refusal))
        if case .tooManyBufferedBytes(let path) = refusal, let gate = self.pipeline.gate {
            return gate.answer(.bufferedBytes, in: self.routes.rowAlone(at: path)?.route.dialect ?? .rest)
        }
        // The protocol's own faults have statuses of their own beside the common 400.
        return Refusal(code, refusal.reason).response(status: refusal.status)
    }

    /// Counts a connection that the server ended without an answer.
    package func note(_ reason: HTTPServerCloseReason) {
        self.pipeline.metrics.rejected(reason: reason.rawValue)
    }

    /// What a refusal is counted as.
    private static func reason(of refusal: HTTPServerRefusal) -> String {
        switch refusal {
        case .badRequest: "bad_request"
        case .uriTooLong: "uri_too_long"
        case .headerTooLarge: "header_too_large"
        case .bodyTooLarge: "body_too_large"
        case .headTimeout: "head_timeout"
        case .bodyTimeout: "body_timeout"
        case .unsupportedTransferEncoding: "transfer_encoding"
        case .httpVersionNotSupported: "http_version"
        case .expectationFailed: "expectation"
        case .tooManyConnections: "too_many_connections"
        case .tooManyBufferedBytes: "too_many_buffered_bytes"
        }
    }
}

extension HTTPServerRefusal {
    /// Whether there was nothing wrong with the request but its time.
    fileprivate var isUnderLoad: Bool {
        switch self {
        case .tooManyConnections, .tooManyBufferedBytes: true
        case .badRequest, .uriTooLong, .headerTooLarge, .bodyTooLarge, .headTimeout, .bodyTimeout,
            .unsupportedTransferEncoding, .httpVersionNotSupported, .expectationFailed:
            false
        }
    }
}
