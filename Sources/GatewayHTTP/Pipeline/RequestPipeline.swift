import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import Logging

/// The path of every request to either listener, from its arrival to its answer.
///
/// The order of the steps is the order of the refusals:
///
/// 1. arrival: the instant, the request's id, its trace; it counts as active;
/// 2. the gate may shed the request before it is read;
/// 3. the credential, in the route's form;
/// 4. the tenant or project of the path, which must be the caller's own;
/// 5. the gate may shed it by the tenant's share;
/// 6. the scope: a key without it is recorded, and the body not read;
/// 7. `Content-Encoding`, the deadline, `Idempotency-Key`;
/// 8. the endpoint reads the request;
/// 9. the gate admits it with its weight;
/// 10. the endpoint does the work, then the request leaves the gate;
/// 11. a refusal from any step is rendered in the route's dialect;
/// 12. metrics, access log, the trace's end, `X-Request-ID`.
///
/// A route without a credential skips 3 to 7 and 9. An operator's route skips 2, 4 to 6, the deadline, and 9.
///
/// The functions are generic and specialised for each endpoint.
struct RequestPipeline: Sendable {
    /// The id of a request in answers, logs, traces and the audit.
    enum RequestID {
        /// Returns the caller's own id if it is valid, else a new one.
        static func of(_ head: HTTPRequestHead, now: Timestamp) -> String {
            if let id = head.fields[.requestID], Self.isSane(id) { return id }
            return UUIDv7.generate(at: now)
        }

        /// True for 1 to 128 characters that are harmless in headers, logs and queries.
        private static func isSane(_ id: String) -> Bool {
            (1...128).contains(id.utf8.count)
                && id.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                        true
                    default:
                        false
                    }
                }
        }
    }

    let callers: Callers
    /// Records refused callers and actions; `nil` if no route has a credential.
    let refusals: AccessRefusals?
    /// Sheds load; `nil` on the admin listener, which never sheds.
    let gate: LoadGate?
    /// The caller's longest wait; `nil` for no limit.
    let requestDeadline: DurationSetting?
    let clock: any WallClock
    let metrics: HTTPMetrics
    let accessLog: AccessLog
    let tracer: RequestTracer
    let logger: Logger

    @inline(__always)  // Saves an async frame in each endpoint.
    func respond<E: Endpoint>(
        to request: HTTPServerRequest,
        _ parameters: PathParameters,
        by endpoint: E
    ) async -> HTTPServerResponse {
        var exchange = self.began(request, parameters)
        var response: HTTPServerResponse
        switch self.read(&exchange, endpoint) {
        case .work(let work, let load):
            if let refusal = self.enter(exchange, load, endpoint.route) {
                response = refusal
            } else {
                do {
                    response = try await endpoint.perform(work, for: exchange)
                } catch {
                    response = self.refusal(error, exchange, endpoint.route)
                }
                self.leave(exchange, load)
            }
        case .forbidden(let principal, let action, let scope):
            response = await self.forbid(principal, action, lacking: scope, exchange, endpoint.route)
        case .guess(let refusal, let pause):
            await self.record(.unauthenticated, at: exchange.request.connection.remoteAddress, exchange)
            await pause()
            response = refusal
        case .unentitled(let refusal, let name):
            await self.record(.forbidden, at: name, exchange)
            response = refusal
        case .answered(let answer):
            response = answer
        }
        self.finish(&response, to: exchange, endpoint.route)
        return response
    }

    /// Answers a request to an unknown address.
    func refuse(unknown request: HTTPServerRequest, _ refusal: Refusal) -> HTTPServerResponse {
        let exchange = self.began(request, .none)
        return self.finished(self.shed(exchange, .rest) ?? refusal.response, to: exchange, nil)
    }

    /// Answers a request with a method that its address does not serve.
    func refuse(_ request: HTTPServerRequest, _ row: RouteTable.Row) -> HTTPServerResponse {
        let exchange = self.began(request, .none)
        if let response = self.shed(exchange, row.route.dialect) {
            return self.finished(response, to: exchange, row.route)
        }
        let methods = row.methods
        let refusal = Refusal(.methodNotAllowed, "Use \(methods.joined(separator: " or ")) here")
        // Send routes answer a wrong method with problem details, whatever their dialect. See `openapi/`.
        let dialect = row.route.isSend ? Dialect.rest : row.route.dialect
        let response = dialect.response(to: refusal, request, allow: methods)
        return self.finished(response, to: exchange, row.route)
    }

    /// Answers a request for a host that the listener does not serve.
    func refuse(misdirected request: HTTPServerRequest) -> HTTPServerResponse {
        let refusal = Refusal(.badRequest, "This listener does not answer for the host; see admin.allowedHosts")
        return self.finished(refusal.response(status: .misdirectedRequest), to: self.began(request, .none), nil)
    }

    // MARK: Before the endpoint

    private enum Reading<Work: Sendable>: Sendable {
        case work(Work, RequestLoad)
        /// The key lacks the action's scope, so the body is not read.
        case forbidden(Principal, AuditRecord.Action, Scope)
        /// The admin token is wrong. The caller's address is recorded, and the answer follows after a pause.
        case guess(HTTPServerResponse, pause: @Sendable () async -> Void)
        /// The operator lacks the role of the route, which is recorded.
        case unentitled(HTTPServerResponse, route: String)
        case answered(HTTPServerResponse)
    }

    @inline(never)  // Keeps the frame small.
    private func began(_ request: HTTPServerRequest, _ parameters: PathParameters) -> Exchange {
        let arrival = Uptime.now
        let time = self.clock.now()
        self.metrics.began()
        return Exchange(
            request: request,
            parameters: parameters,
            arrival: arrival,
            time: time,
            requestID: RequestID.of(request.head, now: time),
            trace: self.tracer.trace(of: request.head, arrival, time),
            deadline: arrival
        )
    }

    @inline(never)  // Keeps the frame small.
    private func read<E: Endpoint>(_ exchange: inout Exchange, _ endpoint: E) -> Reading<E.Work> {
        let route = endpoint.route
        if let response = self.shed(exchange, route.dialect) { return .answered(response) }
        do {
            if let credential = route.credential {
                let given = credential.bytes(in: exchange.request)
                switch self.callers {
                case .tenants(let authenticator):
                    let principal = try self.principal(by: authenticator, given, exchange)
                    exchange.principal = principal
                    try principal.checkOwnership(of: exchange.parameters)
                    if let response = self.shed(exchange, route.dialect) { return .answered(response) }
                    if let action = route.action, let scope = action.scope, !principal.has(scope) {
                        return .forbidden(principal, action, scope)
                    }
                case .operators(let tokens, let sessions, let pause):
                    let isSession = credential == .session
                    let outcome = given.flatMap { given in
                        isSession
                            ? sessions?.authenticate(given, at: exchange.time)
                            : tokens.authenticate(given, at: exchange.time)
                    }
                    switch outcome {
                    case .authenticated(let caller)?:
                        self.metrics.authenticated()
                        exchange.operator = caller
                        let role = AdminRoles.least(for: route)
                        guard caller.role >= role else {
                            let refusal = Refusal(.forbidden, "This needs the role \(role.rawValue)")
                            let response = route.dialect.response(to: refusal, exchange.request)
                            return .unentitled(response, route: AdminRoles.name(of: route))
                        }
                    case .stale?:
                        self.metrics.refused(result: "stale")
                        let detail = "The store can't be reached, so admin tokens can't be checked"
                        throw Refusal(.overloaded, detail, retryAfter: 5)
                    case .unknown?, nil:
                        self.metrics.refused(result: "refused")
                        if isSession { throw Refusal(.unauthenticated) }
                        let refusal = Refusal(.unauthenticated, "Send an admin token as Authorization: Bearer <token>")
                        guard let given, APIKey.id(in: given) == nil else { return .answered(refusal.response) }
                        return .guess(refusal.response, pause: pause)
                    }
                case .unknown:
                    throw Refusal(.unauthenticated)
                }
                try self.readFields(of: &exchange, route)
            }
            let work = try endpoint.read(exchange)
            return .work(work, endpoint.load(of: work))
        } catch {
            return .answered(self.refusal(error, exchange, route))
        }
    }

    private func principal(
        by authenticator: Authenticator,
        _ key: ArraySlice<UInt8>?,
        _ exchange: Exchange
    ) throws(Refusal) -> Principal {
        let clientNames = exchange.request.connection.clientNames
        switch authenticator.authenticate(key: key, clientNames: clientNames, now: exchange.time) {
        case .authenticated(let principal):
            self.metrics.authenticated()
            return principal
        case .refused(let refusal):
            self.metrics.refused(result: refusal.rawValue)
            if refusal == .certificate {
                // A stolen key, or a client that was not registered. Callers get no reason, so operators need one.
                self.logger.notice(
                    "A valid key was refused: its tenant requires a client certificate.",
                    metadata: ["key_id": "\(key.flatMap { APIKey.id(in: $0) } ?? "")"]
                )
            }
            if refusal == .stale {
                throw Refusal(.overloaded, "The store can't be reached, so keys can't be checked", retryAfter: 5)
            }
            if refusal == .unreadable {
                throw Refusal(.overloaded, "This gateway can't read the tenant's settings", retryAfter: 5)
            }
            // The reason for the refusal would help only attackers.
            throw Refusal(.unauthenticated, "Send a valid API key as Authorization: Bearer <key>")
        }
    }

    @inline(never)  // Keeps the frame small.
    private func forbid(
        _ principal: Principal,
        _ action: AuditRecord.Action,
        lacking scope: Scope,
        _ exchange: Exchange,
        _ route: Route
    ) async -> HTTPServerResponse {
        let refusal = Refusal(lacking: scope)
        await self.refusals?.record(refusal, of: principal, asking: action, origin: exchange.origin)
        return self.refusal(refusal, exchange, route)
    }

    @inline(never)  // Keeps the frame small.
    private func record(_ code: OutcomeCode, at object: String?, _ exchange: Exchange) async {
        await self.refusals?.record(code, at: object, origin: exchange.origin)
    }

    /// Reads the fields that mean the same on all routes with a credential.
    private func readFields(of exchange: inout Exchange, _ route: Route) throws(Refusal) {
        if route.dialect.refusesEncodedBodies, let encoding = exchange[.contentEncoding], !encoding.isEmpty,
            encoding.lowercased() != "identity"
        {
            throw Refusal(.unsupportedMediaType, "The body must be sent without Content-Encoding")
        }
        if let limit = self.requestDeadline?.current {
            var timeout = limit
            if let text = exchange[.requestTimeout] {
                guard let milliseconds = Int(digits: text), milliseconds > 0 else {
                    throw Refusal(.badRequest, "X-Request-Timeout-Ms must be a whole number of at least 1")
                }
                timeout = min(limit, .milliseconds(milliseconds))
            }
            exchange.deadline = exchange.arrival + timeout
        }
        guard exchange[.idempotencyKey] != nil else { return }
        // Elsewhere the key would have no effect, and ignoring it would break a promise that callers rely on.
        guard route.isSend else { throw Refusal(.badRequest, "Only sends accept Idempotency-Key; leave it out here") }
        exchange.idempotencyKey = try IdempotencyKey(in: exchange.request.head.fields)
    }

    // MARK: Load

    /// The answer to a request that should be refused unread.
    private func shed(_ exchange: Exchange, _ dialect: Dialect) -> HTTPServerResponse? {
        guard let gate = self.gate,
            let reason = gate.refusal(lag: exchange.request.lag, from: exchange.principal)
        else { return nil }
        return gate.answer(reason, in: dialect)
    }

    /// Admits a tenant's request; otherwise returns the answer.
    @inline(never)  // Keeps the frame small.
    private func enter(_ exchange: Exchange, _ load: RequestLoad, _ route: Route) -> HTTPServerResponse? {
        guard let gate = self.gate, let principal = exchange.principal,
            let reason = gate.enter(principal, load, lag: exchange.request.lag)
        else { return nil }
        return gate.answer(reason, in: route.dialect)
    }

    private func leave(_ exchange: Exchange, _ load: RequestLoad) {
        guard let gate = self.gate, let principal = exchange.principal else { return }
        gate.leave(principal, load)
    }

    // MARK: After the endpoint

    @inline(never)  // Keeps the frame small.
    private func refusal(_ error: any Error, _ exchange: Exchange, _ route: Route) -> HTTPServerResponse {
        if let refusal = error as? Refusal { return route.dialect.response(to: refusal, exchange.request) }
        if let answered = error as? Answered { return answered.response }
        if let error = error as? GatewayError {
            if error.cause != nil {
                self.logger.warning(
                    "A request could not be served",
                    metadata: exchange.metadata(["code": "\(error.code.rawValue)", "reason": "\(error.message)"])
                )
            }
            return route.dialect.response(toFailure: Refusal(error))
        }
        self.logger.error("A request failed unexpectedly", metadata: exchange.metadata(["error": "\(type(of: error))"]))
        return route.dialect.response(toFailure: Refusal(.internalError))
    }

    /// Finishes the answer to a request that no endpoint serves.
    private func finished(
        _ response: consuming HTTPServerResponse,
        to exchange: Exchange,
        _ route: Route?
    ) -> HTTPServerResponse {
        self.finish(&response, to: exchange, route)
        return response
    }

    /// Measures and logs a request, ends its trace, and adds the fields that every answer has.
    @inline(never)  // Keeps the frame small.
    private func finish(_ response: inout HTTPServerResponse, to exchange: Exchange, _ route: Route?) {
        let duration = Uptime.now - exchange.arrival
        let summary = response.summary
        let method = exchange.request.head.method.rawValue
        // One name for all pages: they would take the room of the admin API.
        let name = route?.dialect == .console ? "/console" : route?.template ?? "none"
        self.metrics.ended(route: name, method: method, status: summary.status, in: duration)
        self.accessLog.write(
            .line(exchange, summary, route, in: duration),
            status: summary.status,
            isQuiet: response.isPaced || route?.isProbe == true
        )
        if let trace = exchange.trace, trace.isRecorded, route?.isProbe != true {
            AccessLog.Entry.line(exchange, summary, route, in: duration).end(trace, exchange.request)
        }
        response.headers.append(.requestID, exchange.requestID)
    }
}

extension Exchange {
    fileprivate func metadata(_ further: Logger.Metadata) -> Logger.Metadata {
        var metadata = further
        metadata["request_id"] = "\(self.requestID)"
        if let traceID = self.trace?.traceID { metadata["trace_id"] = "\(traceID)" }
        if let spanID = self.trace?.spanID { metadata["span_id"] = "\(spanID)" }
        return metadata
    }
}

extension Principal {
    /// Throws `not_found` for another tenant in the path, and `forbidden` for another project.
    fileprivate func checkOwnership(of parameters: PathParameters) throws(Refusal) {
        if let tenant = parameters["tenant"], !self.profile.id.text.utf8.elementsEqual(tenant) {
            throw Refusal(.notFound, "There is no such tenant")
        }
        if let project = parameters["project"], !self.profile.project.utf8.elementsEqual(project),
            parameters.decoded("project") != self.profile.project
        {
            throw Refusal(.forbidden)
        }
    }
}

extension TenantProfile {
    /// The tenant's project in paths of v1.
    var project: String { self.tenant.projectID ?? self.id.text }
}

extension IdempotencyKey {
    /// Reads the field, which must occur exactly once.
    init(in fields: HTTPFieldLines) throws(Refusal) {
        guard let key = fields.bytes(of: .idempotencyKey).flatMap(IdempotencyKey.init) else {
            throw Refusal(
                .badRequest,
                "Idempotency-Key must be given once and have 1 to \(IdempotencyKey.maxBytes) printable ASCII characters"
            )
        }
        self = key
    }
}

extension RequestTracer {
    /// Returns the trace of a request; `nil` for a request without one.
    fileprivate func trace(
        of head: HTTPRequestHead,
        _ arrival: Uptime,
        _ time: Timestamp
    ) -> RequestTrace? {
        let parent = head.fields[.traceParent]
        guard parent != nil || self.beginsTraces else { return nil }
        return self.trace(parent: parent, state: head.fields[.traceState], arrival: arrival, time: time)
    }
}
