import EventLoopHTTP
import FCMModel
import GatewayCore

/// The state of one device: whether its token is retired, the rest of its limits, and its audit records.
///
/// The token is in a form's body, never in an address, which browsers and proxies keep.
extension ConsolePages {
    @Sendable
    func deviceQuestion(_ request: ConsoleRequest) async throws -> ConsolePage {
        ConsolePage("Device", Self.question(request))
    }

    private static func question(_ request: ConsoleRequest) -> HTML {
        """
        <form method="post" action="/console/device" class="filters">\(request.formToken)\
        \(HTML.field("Tenant", "tenant", request.fields.text("tenant")))\(HTML.field("Registration token or FID", "token", nil))\
        <button>Look up</button></form>
        """
    }

    @Sendable
    func device(_ request: ConsoleRequest) async throws -> ConsolePage {
        guard let id = request.fields.text("tenant").flatMap({ TenantID($0) }), let token = request.fields.text("token")
        else {
            throw Refusal(.invalidField, "Give a tenant's id and a token")
        }
        let profile = try self.administration.profile(of: id)
        let pseudonym = profile.pseudonymizer.pseudonym(of: token)
        let limits = LimitRequest(
            tenant: profile.limitKey,
            policies: profile.limits,
            recipients: .devices([LimitKey(pseudonym)]),
            isCollapsible: true
        )
        let left = await self.console.limiter.status(of: limits, now: request.exchange.time).recipients.first ?? []
        var query = AuditQuery(limit: Self.recordsPerPage)
        (query.tenant, query.tenantUID, query.target) = (id.text, profile.uid, pseudonym)
        let page = try await self.audit.page(query, of: profile, origin: request.exchange.origin)
        let retirement = self.console.retired.report(on: pseudonym, of: profile)
        let content: HTML = """
            \(Self.question(request))
            \(HTML.facts([
                ("Tenant", .tenant(id.text)),
                ("Token", .state(retirement?.state.rawValue ?? "not retired", isGood: retirement == nil)),
                ("FCM's last report on it (UTC)", .moment(retirement?.at)),
                ("Pseudonym in the audit", "<code>\(pseudonym.description)</code>"),
            ]))
            \(HTML.quotas("What is left for the device", left.map { ($0.scope, $0.quota) }))
            \(Self.table("Its records, the latest first", page.records, empty: page.next == nil
                ? "The audit has no record of it." : "The newest part of the audit has no record of it."))
            """
        return ConsolePage("Device", content)
    }
}
