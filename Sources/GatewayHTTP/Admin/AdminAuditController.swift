import FCMModel
import GatewayCore
import Hummingbird

/// Shows operators the audit of all tenants.
struct AdminAuditController {
    let audit: any AuditStore
    let administration: Administration
    let cursors: AuditCursorSealer

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("admin/v1/audit", use: self.list)
        return routes
    }

    @Sendable
    private func list(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let query = try QueryReader(request, allowed: AuditQuery.parameters.union(["tenant"]))
        var profile: TenantProfile?
        var tenant: String?
        if let name = query.text("tenant") {
            // A removed tenant's records stay readable; only its pseudonyms can't be computed any more.
            tenant = name
            profile = TenantID(name).flatMap { try? self.administration.profile(of: $0) }
        }
        var auditQuery = try AuditQuery(query, profile: profile)
        auditQuery.tenant = tenant
        auditQuery.before = try self.cursors.position(query, for: nil)
        let page = try await self.audit.page(auditQuery)
        return Response(json: AuditPageAnswer(page: page, tenantUID: nil, cursors: self.cursors).body)
    }
}
