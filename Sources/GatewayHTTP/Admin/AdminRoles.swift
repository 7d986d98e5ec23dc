import GatewayCore
import HTTPTypes

/// The least role of each route of the admin listener. Its other routes are open: probes, `/metrics`, its description, and
/// the console's log-in, style and script.
enum AdminRoles {
    static let table: [String: OperatorRole] = [
        "GET /admin/v1/tenants": .viewer,
        "GET /admin/v1/tenants/{tenant}": .viewer,
        "PUT /admin/v1/tenants/{tenant}": .admin,
        "PATCH /admin/v1/tenants/{tenant}": .admin,
        "DELETE /admin/v1/tenants/{tenant}": .admin,

        "GET /admin/v1/tenants/{tenant}/credentials/legacy": .viewer,
        "PUT /admin/v1/tenants/{tenant}/credentials/legacy": .admin,
        "DELETE /admin/v1/tenants/{tenant}/credentials/legacy": .admin,
        "GET /admin/v1/tenants/{tenant}/credentials/v1": .viewer,
        "PUT /admin/v1/tenants/{tenant}/credentials/v1": .admin,
        "DELETE /admin/v1/tenants/{tenant}/credentials/v1": .admin,
        "POST /admin/v1/tenants/{tenant}/credentials/check": .operator,

        "GET /admin/v1/tenants/{tenant}/keys": .viewer,
        "POST /admin/v1/tenants/{tenant}/keys": .operator,
        "POST /admin/v1/tenants/{tenant}/keys/{key}/rotate": .operator,
        "DELETE /admin/v1/tenants/{tenant}/keys/{key}": .operator,

        "GET /admin/v1/tenants/{tenant}/limits": .viewer,
        "PUT /admin/v1/tenants/{tenant}/limits": .operator,
        "PATCH /admin/v1/tenants/{tenant}/limits": .operator,

        "GET /admin/v1/batches": .viewer,
        "POST /admin/v1/batches/{batch}/pause": .operator,
        "POST /admin/v1/batches/{batch}/resume": .operator,
        "POST /admin/v1/batches/{batch}/cancel": .operator,

        "GET /admin/v1/audit": .auditor,

        "GET /console": .viewer,
        "POST /console/log-out": .viewer,
        "GET /console/tenants": .viewer,
        "GET /console/tenants/{tenant}": .viewer,
        "GET /console/batches": .viewer,
        "GET /console/tenants/{tenant}/batches/{batch}": .viewer,
        "POST /console/tenants/{tenant}/batches/{batch}/pause": .operator,
        "POST /console/tenants/{tenant}/batches/{batch}/resume": .operator,
        "POST /console/tenants/{tenant}/batches/{batch}/cancel": .operator,
        // The results name devices.
        "GET /console/tenants/{tenant}/batches/{batch}/results": .operator,
        "GET /console/device": .auditor,
        "POST /console/device": .auditor,
        "GET /console/audit": .auditor,
        "GET /console/try": .operator,
        "POST /console/try": .operator,

        "GET /admin/v1/admin-tokens": .admin,
        "POST /admin/v1/admin-tokens": .admin,
        "DELETE /admin/v1/admin-tokens/{name}": .admin,
    ]

    static func name(of route: Route) -> String { "\(route.method.rawValue) \(route.template)" }

    /// Returns the role that a route needs; `admin` for a route that the table lacks.
    static func least(for route: Route) -> OperatorRole { Self.table[Self.name(of: route)] ?? .admin }
}
