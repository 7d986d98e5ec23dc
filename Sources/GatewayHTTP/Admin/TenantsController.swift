import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird
import NIOCore
import StrictJSON

/// Makes, shows and removes tenants.
struct TenantsController {
    let administration: Administration

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("admin/v1/tenants", use: self.list)
        routes.get("admin/v1/tenants/:tenant", use: self.get)
        routes.put("admin/v1/tenants/:tenant", use: self.put)
        routes.delete("admin/v1/tenants/:tenant", use: self.delete)
        return routes
    }

    @Sendable
    private func list(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let query = try QueryReader(request, allowed: ["limit", "cursor"])
        let limit = try query.limit()
        let after = try query.cursor()
        let tenants = self.administration.tenants.drop { tenant in after.map { tenant.id.text <= $0 } ?? false }
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("tenants")
        writer.beginArray()
        for tenant in tenants.prefix(limit) { writer.write(tenant) }
        writer.endArray()
        if tenants.count > limit, let last = tenants.prefix(limit).last {
            writer.member("next_cursor", Cursor.text(of: last.id.text))
        }
        writer.endObject()
        return Response(json: writer.finish())
    }

    @Sendable
    private func get(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let profile = try self.administration.profile(of: context.tenantID())
        return Self.response(profile.tenant)
    }

    @Sendable
    private func put(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let id = try context.tenantID()
        let members = try JSONBody.members(
            of: context.body,
            contentType: request.headers[.contentType],
            limits: .small
        )
        let draft = try TenantDraft(members, id: id)
        let (tenant, isNew) = try await self.administration.put(
            draft,
            id: id,
            origin: context.origin(method: request.method.rawValue)
        )
        return Self.response(tenant, status: isNew ? .created : .ok)
    }

    @Sendable
    private func delete(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        try await self.administration.deleteTenant(
            context.tenantID(),
            origin: context.origin(method: request.method.rawValue)
        )
        return Response(status: .noContent)
    }

    private static func response(_ tenant: Tenant, status: HTTPResponse.Status = .ok) -> Response {
        var writer = JSONWriter()
        writer.write(tenant)
        return Response(status: status, json: writer.finish())
    }
}

extension GatewayRequestContext {
    /// The tenant that the path names.
    ///
    /// - Throws: `not_found` for a name that no tenant can have.
    func tenantID() throws(Refusal) -> TenantID {
        guard let id = self.parameters.get("tenant").flatMap({ TenantID($0) }) else {
            throw Refusal(.notFound, "A tenant's name is 1 to 63 characters of a-z 0-9 -, and starts with none of -")
        }
        return id
    }
}

extension TenantDraft {
    /// Reads a tenant's body; without a name for people, the tenant's id stands for it.
    ///
    /// - Throws: a problem with every field at fault.
    fileprivate init(_ members: JSONMembers, id: TenantID) throws(Refusal) {
        var problems = FieldProblems()
        var draft = TenantDraft(displayName: id.text, upstream: .legacy)
        for member in members where !problems.isFull {
            let key = member.key
            func pointer() -> JSONPointer { JSONPointer().appending(key) }
            switch key.protocolWord {
            case "display_name":
                draft.displayName = problems.text(member.value, at: pointer()) ?? ""
            case "upstream":
                draft.upstream = problems.word(member.value, as: UpstreamKind.self, at: pointer()) ?? .legacy
            case "project_id":
                draft.projectID = problems.text(member.value, at: pointer())
            case "sender_id":
                draft.senderID = problems.text(member.value, at: pointer())
                if let id = draft.senderID, !id.isDigits {
                    problems.report(.invalidField, at: pointer(), "A sender id is a number, written as a string")
                }
            case "disabled":
                draft.isDisabled = problems.bool(member.value, at: pointer()) ?? false
            case "client_names":
                draft.clientNames = problems.clientNames(member.value, at: pointer())
            default:
                problems.unknown(pointer())
            }
        }
        guard problems.list.isEmpty else { throw Refusal(problems.list) }
        self = draft
    }
}

extension FieldProblems {
    /// Names of certificates' owners, each once.
    fileprivate mutating func clientNames(_ value: JSONValue, at pointer: JSONPointer) -> [ClientName] {
        guard let texts = self.strings(value, atMost: TenantDraft.maxClientNames, at: pointer) else { return [] }
        var names: [ClientName] = []
        for (index, text) in texts.enumerated() {
            guard let name = ClientName(text) else {
                self.report(
                    .invalidField,
                    at: pointer.appending(index),
                    "This must be a DNS name without a wildcard, or a URI of at most \(ClientName.maxBytes) bytes"
                )
                continue
            }
            guard !names.contains(name) else {
                self.report(.invalidField, at: pointer.appending(index), "This name is given twice")
                continue
            }
            names.append(name)
        }
        return names
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ tenant: Tenant) {
        self.beginObject()
        self.member("tenant", tenant.id.text)
        self.member("display_name", tenant.displayName)
        self.member("upstream", tenant.upstream.rawValue)
        if let projectID = tenant.projectID { self.member("project_id", projectID) }
        if let senderID = tenant.senderID { self.member("sender_id", senderID) }
        self.member("disabled", tenant.isDisabled)
        if !tenant.clientNames.isEmpty {
            self.key("client_names")
            self.beginArray()
            for name in tenant.clientNames { self.string(name.text) }
            self.endArray()
        }
        self.member("created_at", tenant.createdAt.rfc3339)
        self.member("updated_at", tenant.updatedAt.rfc3339)
        self.endObject()
    }
}
