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

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("v1/tenants/:tenant/audit", use: self.list)
        return routes
    }

    @Sendable
    private func list(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant((context.parameters.get("tenant") ?? "").utf8)
        guard principal.has(.readAudit) else { throw Problem(.forbidden, "The key lacks the scope audit:read") }
        let query = try QueryReader(request, allowed: AuditQuery.parameters)
        let auditQuery = try AuditQuery(query, profile: principal.profile)
        let decision = await self.limiter.admit(LimitRequest(calls: 1, of: principal.profile), now: self.clock.now())
        var answer: HTTPServerResponse
        if case .none(let denial) = decision.admission {
            var problem = Problem(SendRefusal(denial), messageID: "")
            // There is no message.
            problem.messageID = nil
            problem.detail = "The tenant's quota is used up; a page of the audit costs as much as a message"
            answer = problem.response
        } else {
            let page = try await self.audit.page(auditQuery)
            answer = HTTPServerResponse(
                status: .ok,
                headers: [.contentType: "application/json"],
                body: AuditPageAnswer(page).body
            )
        }
        answer.headers.append(decision.tenantQuotas)
        return context.answering(answer)
    }
}

extension AuditQuery {
    /// The query parameters of audit lists.
    static let parameters: Set<String> = [
        "from", "to", "action", "outcome", "target", "message", "limit", "cursor",
    ]

    /// Reads a query.
    ///
    /// - Parameters:
    ///   - query: the request's parameters.
    ///   - profile: whose records are asked for; `nil` for everybody's.
    /// - Throws: `invalid_field` that names the parameter.
    init(_ query: QueryReader, profile: TenantProfile?) throws(Problem) {
        self.init(limit: try query.limit())
        self.tenant = profile?.id.text
        self.from = try query.time("from")
        self.to = try query.time("to")
        self.action = query.text("action")
        self.messageID = query.text("message")
        if let text = query.text("outcome") {
            guard let outcome = AuditRecord.Outcome(rawValue: text) else {
                let words = AuditRecord.Outcome.allCases.map(\.rawValue).joined(separator: ", ")
                throw Problem(.invalidField, "outcome must be one of: \(words)")
            }
            self.outcome = outcome
        }
        if let target = query.text("target") {
            guard let profile else {
                throw Problem(
                    .invalidField,
                    "target needs a tenant that exists: pseudonyms differ from tenant to tenant"
                )
            }
            self.target = profile.pseudonymizer.pseudonym(of: target)
        }
        if let content = try query.cursor() {
            let parts = content.split(separator: ".").map { Int(digits: $0) }
            guard parts.count == 2, let writer = parts[0], let sequence = parts[1] else { throw Cursor.problem }
            self.before = AuditPosition(writer: writer, sequence: sequence)
        }
    }
}
