import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird
import NIOCore
import StrictJSON

/// Takes credentials in and never gives them out.
struct CredentialsController {
    let administration: Administration

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("admin/v1/tenants/:tenant/credentials/legacy", use: self.get)
        routes.put("admin/v1/tenants/:tenant/credentials/legacy", use: self.put)
        return routes
    }

    @Sendable
    private func get(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let profile = try self.administration.profile(of: context.tenantID())
        guard let stored = profile.storedCredentials.first(where: { $0.kind == .legacy }) else {
            throw Problem(.notFound, "The tenant has no legacy credential")
        }
        return Self.response(stored)
    }

    @Sendable
    private func put(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let id = try context.tenantID()
        let members = try JSONBody.members(of: context.body, contentType: request.headers[.contentType])
        let stored = try await self.administration.putLegacyCredential(
            LegacyCredential(members),
            tenant: id,
            origin: context.origin(method: request.method.rawValue)
        )
        return Self.response(stored)
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

extension LegacyCredential {
    /// Reads a legacy credential's body.
    ///
    /// - Throws: a problem with every field at fault.
    fileprivate init(_ members: JSONMembers) throws(Problem) {
        var problems = FieldProblems()
        var serverKey: String?
        var endpoint: String?
        for member in members {
            let pointer = JSONPointer().appending(member.key)
            switch member.key {
            case "server_key":
                serverKey = problems.text(member.value, at: pointer)
                if let key = serverKey, !key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
                    problems.report(.invalidField, at: pointer, "A server key has neither blanks nor controls")
                }
            case "endpoint":
                endpoint = problems.text(member.value, at: pointer)
                if let endpoint, HTTPOrigin(endpoint) == nil {
                    problems.report(.invalidField, at: pointer, "An endpoint is http(s)://host[:port] without a path")
                }
            default:
                problems.unknown(pointer)
            }
        }
        guard let serverKey, problems.list.isEmpty else {
            if problems.list.isEmpty {
                problems.report(.invalidField, at: JSONPointer().appending("server_key"), "This must be given")
            }
            throw Problem(problems.list)
        }
        self.init(serverKey: Secret(serverKey), endpoint: endpoint)
    }
}
