import EventLoopHTTP
import FCMModel
import GatewayCore
import Hummingbird
import NIOCore
import StrictJSON

/// Shows a tenant what was done in its name.
struct AuditController {
    let audit: any AuditStore
    let limiter: any RateLimiter
    let clock: any WallClock
    let cursors: AuditCursorSealer

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("v1/tenants/:tenant/audit", use: self.list)
        return routes
    }

    @Sendable
    private func list(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant((context.parameters.get("tenant") ?? "").utf8)
        guard principal.has(.readAudit) else { throw Refusal(.forbidden, "The key lacks the scope audit:read") }
        let query = try QueryReader(request, allowed: AuditQuery.parameters)
        var auditQuery = try AuditQuery(query, profile: principal.profile)
        let uid = principal.profile.uid
        (auditQuery.tenant, auditQuery.tenantUID) = (principal.profile.id.text, uid)
        auditQuery.before = try self.cursors.position(query, for: uid)
        let decision = await self.limiter.admit(LimitRequest(calls: 1, of: principal.profile), now: self.clock.now())
        var answer: HTTPServerResponse
        if case .none(let denial) = decision.admission {
            var refusal = Refusal(denial)
            refusal.detail = "The tenant's quota is used up; a page of the audit costs as much as a message"
            answer = refusal.response
        } else {
            let page = try await self.audit.page(auditQuery)
            answer = HTTPServerResponse(
                status: .ok,
                headers: [.contentType: "application/json"],
                body: AuditPageAnswer(page: page, tenantUID: uid, cursors: self.cursors).body
            )
        }
        answer.headers.append(decision.tenantQuotas)
        return context.answering(answer)
    }
}

extension AuditQuery {
    /// The query parameters of audit lists.
    static let parameters: Set<String> = [
        "from", "to", "action", "outcome", "code", "principal", "target", "message", "request_id", "limit", "cursor",
    ]

    /// Reads what is looked for, whoever's it is.
    ///
    /// - Parameters:
    ///   - query: the request's parameters.
    ///   - profile: whose pseudonyms the target has; `nil` for nobody's.
    /// - Throws: `invalid_field` that names the parameter.
    init(_ query: QueryReader, profile: TenantProfile?) throws(Refusal) {
        self.init(limit: try query.limit())
        self.from = try query.time("from")
        self.to = try query.time("to")
        self.action = try query.word("action", of: AuditAction.self)?.rawValue
        self.outcome = try query.word("outcome", of: AuditRecord.Outcome.self)
        self.code = query.text("code")
        self.principal = query.text("principal")
        self.requestID = query.text("request_id")
        self.messageID = query.text("message")
        if let target = query.text("target") {
            guard let profile else {
                throw Refusal(
                    .invalidField,
                    "target needs a tenant that exists: pseudonyms differ from tenant to tenant"
                )
            }
            self.target = profile.pseudonymizer.pseudonym(of: target)
        }
    }
}

extension AuditCursorSealer {
    /// Where a list is to go on.
    ///
    /// - Throws: `invalid_field` for a cursor of somebody else's list, or none at all.
    func position(_ query: QueryReader, for uid: UInt64?) throws(Refusal) -> AuditPosition? {
        guard let text = query.text("cursor") else { return nil }
        guard let position = Cursor.bytes(of: text).flatMap({ self.open($0, for: uid) }) else { throw Cursor.refusal }
        return position
    }
}
