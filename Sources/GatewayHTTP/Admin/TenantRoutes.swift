import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Creates, shows and deletes tenants.
struct TenantRoutes {
    let administration: Administration

    var endpoints: [any Endpoint] {
        [
            Handler(.get, "/admin/v1/tenants", self.list),
            Handler(.get, "/admin/v1/tenants/{tenant}", self.get),
            Handler(.put, "/admin/v1/tenants/{tenant}", self.put),
            Handler(.patch, "/admin/v1/tenants/{tenant}", self.patch),
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
        let change = try Change(exchange.members(limits: .small), isPatch: false)
        let (tenant, isNew) = try await self.administration.put(id, origin: exchange.origin) {
            tenant throws(GatewayError) in
            try exchange.requireMatch(tenant.map(Self.body))
            return change.applied(to: Tenant.Draft(displayName: id.text), of: id)
        }
        return Self.response(tenant, status: isNew ? .created : .ok)
    }

    @Sendable
    private func patch(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let id = try exchange.tenantID
        let change = try Change(exchange.patchMembers(), isPatch: true)
        let (tenant, _) = try await self.administration.put(id, origin: exchange.origin) {
            tenant throws(GatewayError) in
            guard let tenant else { throw GatewayError(.notFound, "There is no such tenant") }
            try exchange.requireMatch(Self.body(tenant))
            return change.applied(to: Tenant.Draft(tenant), of: id)
        }
        return Self.response(tenant)
    }

    @Sendable
    private func delete(_ exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.administration.deleteTenant(exchange.tenantID, origin: exchange.origin) {
            profile throws(GatewayError) in
            try exchange.requireMatch(Self.body(profile.tenant))
        }
        return HTTPServerResponse(status: .noContent)
    }

    private static func response(_ tenant: Tenant, status: HTTPResponse.Status = .ok) -> HTTPServerResponse {
        HTTPServerResponse(status: status, taggedJSON: Self.body(tenant))
    }

    private static func body(_ tenant: Tenant) -> ByteBuffer {
        var writer = JSONWriter()
        writer.write(tenant)
        return writer.finish()
    }
}

extension TenantRoutes {
    /// The settings that a body names, read and checked; applied to a draft, they leave its other settings as they are.
    private struct Change: Sendable {
        private enum Member: String, CaseIterable {
            case displayName = "display_name"
            case upstream
            case projectID = "project_id"
            case senderID = "sender_id"
            case disabled
            case clientNames = "client_names"
        }

        private var parts: [@Sendable (inout Tenant.Draft) -> Void] = []

        /// Reads a tenant's body. In a merge patch (RFC 7396), `null` returns a setting to a new tenant's value.
        init(_ members: JSONMembers, isPatch: Bool) throws(Refusal) {
            var problems = FieldProblems()
            for member in members where !problems.isFull {
                let key = member.key
                let pointer = JSONPointer().appending(key)
                let value = isPatch && member.value.isNull ? nil : member.value
                switch key.protocolWord.flatMap(Member.init) {
                case .displayName:
                    // Without a display name, the tenant's id is shown.
                    let name = value.map { problems.label($0, at: pointer) ?? "" } ?? ""
                    self.parts.append { $0.displayName = name }
                case .upstream:
                    let kind =
                        value.flatMap { problems.word($0, as: UpstreamKind.self, at: pointer) }
                        ?? Tenant.Draft.defaultUpstream
                    self.parts.append { $0.upstream = kind }
                case .projectID:
                    let id = value.flatMap { problems.label($0, at: pointer) }
                    if let id, !id.utf8.allSatisfy(Tenant.Draft.isProjectByte) {
                        problems.report(.invalidField, at: pointer, "A project id has only letters, digits and - . _ :")
                    }
                    self.parts.append { $0.projectID = id }
                case .senderID:
                    let id = value.flatMap { problems.label($0, at: pointer) }
                    if let id, !id.isDigits {
                        problems.report(.invalidField, at: pointer, "A sender id is a number, written as a string")
                    }
                    self.parts.append { $0.senderID = id }
                case .disabled:
                    let isDisabled = value.flatMap { problems.bool($0, at: pointer) } ?? false
                    self.parts.append { $0.isDisabled = isDisabled }
                case .clientNames:
                    let names = value.map { problems.clientNames($0, at: pointer) } ?? []
                    self.parts.append { $0.clientNames = names }
                case nil:
                    problems.unknown(key, among: Member.allCases.map(\.rawValue))
                }
            }
            guard problems.list.isEmpty else { throw Refusal(problems.list) }
        }

        func applied(to draft: Tenant.Draft, of id: TenantID) -> Tenant.Draft {
            var draft = draft
            for part in self.parts { part(&draft) }
            if draft.displayName.isEmpty { draft.displayName = id.text }
            return draft
        }
    }
}

extension FieldProblems {
    fileprivate mutating func clientNames(_ value: JSONValue, at pointer: JSONPointer) -> [ClientName] {
        guard let texts = self.strings(value, atMost: Tenant.Draft.maxClientNames, at: pointer) else { return [] }
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
