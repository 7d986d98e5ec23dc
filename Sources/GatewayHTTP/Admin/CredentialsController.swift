import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird
import NIOCore
import StrictJSON

/// Takes credentials in, proves them, and never gives them out.
struct CredentialsController {
    let administration: Administration
    let prover: any CredentialProver
    let tokenHosts: Setting<TokenHosts>

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        for kind in UpstreamKind.allCases {
            routes.get("admin/v1/tenants/:tenant/credentials/\(kind.rawValue)") { _, context in
                try Self.response(self.stored(kind, context))
            }
        }
        routes.put("admin/v1/tenants/:tenant/credentials/legacy", use: self.putLegacy)
        routes.put("admin/v1/tenants/:tenant/credentials/v1", use: self.putServiceAccount)
        routes.post("admin/v1/tenants/:tenant/credentials/check", use: self.check)
        return routes
    }

    private func stored(_ kind: UpstreamKind, _ context: GatewayRequestContext) throws -> StoredCredential {
        let profile = try self.administration.profile(of: context.tenantID())
        guard let stored = profile.storedCredentials.first(where: { $0.kind == kind }) else {
            throw Refusal(.notFound, "The tenant has no \(kind.rawValue) credential")
        }
        return stored
    }

    @Sendable
    private func putLegacy(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let id = try context.tenantID()
        let members = try JSONBody.members(
            of: context.body,
            contentType: request.headers[.contentType],
            limits: .small
        )
        let stored = try await self.administration.putLegacyCredential(
            LegacyCredential(members, allowing: self.tokenHosts.current.plainHTTP),
            tenant: id,
            origin: context.origin(method: request.method.rawValue)
        )
        return Self.response(stored)
    }

    @Sendable
    private func putServiceAccount(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let id = try context.tenantID()
        let members = try JSONBody.members(
            of: context.body,
            contentType: request.headers[.contentType],
            limits: .small
        )
        let stored = try await self.administration.putServiceAccount(
            ServiceAccountCredential(members, allowing: self.tokenHosts.current),
            tenant: id,
            origin: context.origin(method: request.method.rawValue)
        )
        return Self.response(stored)
    }

    /// Proves the credential that the tenant's sends use, and any other that it has.
    @Sendable
    private func check(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let profile = try self.administration.profile(of: context.tenantID())
        let inUse = profile.tenant.upstream
        let kinds = UpstreamKind.allCases.filter { kind in
            kind == inUse || profile.storedCredentials.contains { $0.kind == kind }
        }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("checks")
        writer.beginArray()
        for kind in kinds {
            writer.write(await self.prover.prove(kind, of: profile), of: kind, isInUse: kind == inUse)
        }
        writer.endArray()
        writer.endObject()
        return Response(json: writer.finish())
    }

    private static func response(_ stored: StoredCredential) -> Response {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("kind", stored.kind.rawValue)
        writer.member("fingerprint", stored.fingerprint)
        if let endpoint = stored.endpoint { writer.member("endpoint", endpoint) }
        writer.member("version", stored.version)
        writer.member("created_at", stored.createdAt.rfc3339)
        writer.endObject()
        return Response(json: writer.finish())
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ report: CredentialReport, of kind: UpstreamKind, isInUse: Bool) {
        self.beginObject()
        self.member("kind", kind.rawValue)
        self.member("in_use", isInUse)
        self.member("finding", report.finding.rawValue)
        self.member("detail", report.detail)
        if let code = report.upstreamCode { self.member("upstream_code", code) }
        self.endObject()
    }
}
