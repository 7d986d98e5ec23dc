import EventLoopHTTP
import FCMModel
import GatewayCore

/// The tenants, and one tenant with its credentials, keys and limits.
extension ConsolePages {
    private static let tenantsPerPage = 25
    private static let maxKeys = 30

    @Sendable
    func tenants(_ request: ConsoleRequest) async throws -> ConsolePage {
        let (search, after) = (request.fields.text("search"), try request.fields.cursor())
        let wanted = search?.lowercased() ?? ""
        let found = self.administration.tenants.filter { tenant in
            (after.map { tenant.id.text > $0 } ?? true)
                && (wanted.isEmpty || tenant.id.text.contains(wanted)
                    || tenant.displayName.lowercased().contains(wanted))
        }
        let page = found.prefix(Self.tenantsPerPage)
        let more = found.count > page.count ? page.last.map { Cursor.text(of: $0.id.text) } : nil
        let columns = ["Tenant", "Name", "Upstream", "State", "Changed (UTC)"]
        let content: HTML = """
            <form class="filters" role="search">\(HTML.field("Name or part of it", "search", search))
            <button>Search</button></form>
            \(HTML.table("Tenants", columns, page, empty: "No tenant is found.") { tenant in
                [
                    .tenant(tenant.id.text), .short(tenant.displayName), "\(tenant.upstream.rawValue)",
                    Self.state(of: tenant), .moment(tenant.updatedAt),
                ]
            })
            \(HTML.next("/console/tenants", [("search", search)], cursor: more))
            """
        return ConsolePage("Tenants", content)
    }

    private static func names(of tenant: Tenant) -> HTML {
        .short(tenant.clientNames.map(\.text).joined(separator: ", "))
    }

    private static func state(of tenant: Tenant) -> HTML {
        .state(tenant.isDisabled ? "disabled" : "enabled", isGood: !tenant.isDisabled)
    }

    @Sendable
    func tenant(_ request: ConsoleRequest) async throws -> ConsolePage {
        let (profile, now) = (try self.administration.profile(of: request.exchange.tenantID), request.exchange.time)
        let tenant = profile.tenant
        let left = await self.console.limiter.status(of: LimitRequest(calls: 1, of: profile), now: now)
        let gap: HTML? = profile.missingCredential.map { "<p class=\"bad\">\($0).</p>" }
        let keys = profile.keys.sorted { ($1.createdAt, $0.id) < ($0.createdAt, $1.id) }
        let rest: HTML? =
            keys.count > Self.maxKeys ? "<p>\(keys.count - Self.maxKeys) older keys are not shown.</p>" : nil
        let content: HTML = """
            \(gap)\(HTML.facts([
                ("Name", "\(tenant.displayName)"), ("Upstream", "\(tenant.upstream.rawValue)"),
                ("State", Self.state(of: tenant)), ("Project", .short(profile.v1ProjectID)),
                ("Sender id", .short(tenant.senderID)),
                ("Client certificates", tenant.clientNames.isEmpty ? "not required" : Self.names(of: tenant)),
                ("Made (UTC)", .moment(tenant.createdAt)),
            ]))
            <p><a href="/console/batches?tenant=\(tenant.id.text)">Batches</a></p>
            <h2>Last hour on this replica</h2>
            \(HourChart.svg(self.console.history.minutes(of: tenant.id.text)))
            <h2>Credentials and keys</h2>
            \(HTML.table("Credentials", ["For", "Version", "Fingerprint", "Endpoint", "Stored (UTC)"],
                profile.storedCredentials, empty: "The tenant has no credential.") { stored in
                [
                    "\(stored.kind.rawValue)", "\(stored.version)", "<code>\(String(stored.fingerprint.prefix(16)))</code>",
                    .short(stored.endpoint ?? "as configured"), .moment(stored.createdAt),
                ]
            })
            \(HTML.table("Keys", ["Id", "Name", "State", "Scopes", "Made (UTC)", "Expires (UTC)"],
                keys.prefix(Self.maxKeys), empty: "The tenant has no key.") { key in
                let word = key.revokedAt != nil ? "revoked" : key.isAlive(at: now) ? "valid" : "expired"
                return [
                    "<code>\(key.id)</code>", .short(key.name), .state(word, isGood: word == "valid"),
                    "\(key.scopes.map(\.rawValue).sorted().joined(separator: ", "))", .moment(key.createdAt),
                    .moment(key.expiresAt),
                ]
            })\(rest)
            <h2>Limits</h2>
            \(HTML.table("Limits", ["Of each", "Rate / period : burst", "Origin"], LimitScope.allCases, empty: "") { scope in
                [
                    "\(scope.rawValue)", "\(profile.limits[scope].map(\.text).joined(separator: ", "))",
                    profile.limitOverrides[scope] == nil ? "the default" : "its own",
                ]
            })
            \(HTML.quotas("What is left for the tenant", left.tenant.map { (.tenant, $0) }))
            """
        return ConsolePage("Tenant \(tenant.id.text)", content)
    }
}
