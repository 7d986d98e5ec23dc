import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Makes, shows and removes tenants.
struct TenantRoutes {
    let administration: Administration

    var endpoints: [any Endpoint] {
        [
            Handler(.get, "/admin/v1/tenants", self.list),
            Handler(.get, "/admin/v1/tenants/{tenant}", self.get),
            Handler(.put, "/admin/v1/tenants/{tenant}", self.put),
            Handler(.delete, "/admin/v1/tenants/{tenant}", self.delete),
        ]
    }

    @Sendable
    private func list(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let (limit, after) = try exchange.pageQuery()
        let tenants = self.administration.tenants.drop { tenant in after.map { tenant.id.text <= $0 } ?? false }
        return .page("tenants", tenants, limit: limit, cursor: { $0.id.text }) { $0.write($1) }
    }

    @Sendable
    private func get(_ exchange: Exchange) async throws -> HTTPServerResponse {
        Self.response(try self.administration.profile(of: exchange.tenantID).tenant)
    }

    @Sendable
    private func put(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let id = try exchange.tenantID
        let draft = try TenantDraft(exchange.members(limits: .small), id: id)
        let (tenant, isNew) = try await self.administration.put(draft, id: id, origin: exchange.origin)
        return Self.response(tenant, status: isNew ? .created : .ok)
    }

    @Sendable
    private func delete(_ exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.administration.deleteTenant(exchange.tenantID, origin: exchange.origin)
        return HTTPServerResponse(status: .noContent)
    }

    private static func response(_ tenant: Tenant, status: HTTPResponse.Status = .ok) -> HTTPServerResponse {
        var writer = JSONWriter()
        writer.write(tenant)
        return HTTPServerResponse(status: status, json: writer.finish())
    }
}

extension TenantDraft {
    /// Reads a tenant's body; without a name for people, the tenant's id stands for it.
    fileprivate init(_ members: JSONMembers, id: TenantID) throws(Refusal) {
        var problems = FieldProblems()
        var draft = TenantDraft(displayName: id.text, upstream: .legacy)
        for member in members where !problems.isFull {
            let key = member.key
            let pointer = JSONPointer().appending(key)
            switch key.protocolWord {
            case "display_name":
                draft.displayName = problems.label(member.value, at: pointer) ?? ""
            case "upstream":
                draft.upstream = problems.word(member.value, as: UpstreamKind.self, at: pointer) ?? .legacy
            case "project_id":
                draft.projectID = problems.label(member.value, at: pointer)
            case "sender_id":
                draft.senderID = problems.label(member.value, at: pointer)
                if let id = draft.senderID, !id.isDigits {
                    problems.report(.invalidField, at: pointer, "A sender id is a number, written as a string")
                }
            case "disabled":
                draft.isDisabled = problems.bool(member.value, at: pointer) ?? false
            case "client_names":
                draft.clientNames = problems.clientNames(member.value, at: pointer)
            default:
                problems.unknown(pointer)
            }
        }
        guard problems.list.isEmpty else { throw Refusal(problems.list) }
        self = draft
    }
}

extension FieldProblems {
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
            self.member("client_names", tenant.clientNames.map(\.text))
        }
        self.member("created_at", tenant.createdAt.rfc3339)
        self.member("updated_at", tenant.updatedAt.rfc3339)
        self.endObject()
    }
}
