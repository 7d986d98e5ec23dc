import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Creates, shows, rotates and revokes a tenant's keys.
struct KeyRoutes {
    private static let maxOverlapSeconds = 30 * 86_400

    let administration: Administration

    var endpoints: [any Endpoint] {
        [
            Handler(.get, "/admin/v1/tenants/{tenant}/keys", self.list),
            Handler(.post, "/admin/v1/tenants/{tenant}/keys", self.create),
            Handler(.delete, "/admin/v1/tenants/{tenant}/keys/{key}", self.revoke),
            Handler(.post, "/admin/v1/tenants/{tenant}/keys/{key}/rotate", self.rotate),
        ]
    }

    @Sendable
    private func list(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let (limit, after) = try exchange.pageQuery()
        var keys = try self.administration.keys(of: exchange.tenantID)[...]
        if let after {
            guard let index = keys.firstIndex(where: { $0.id == after }) else { throw Cursor.refusal }
            keys = keys[(index + 1)...]
        }
        return .page("keys", keys, limit: limit, cursor: { $0.id }) { $0.write($1, secret: nil) }
    }

    @Sendable
    private func create(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let id = try exchange.tenantID
        let body = try Body(exchange.members(limits: .small))
        let origin = exchange.origin
        guard let key = body.key else {
            if let end = body.draft.expiresAt, end <= exchange.time {
                let field = Refusal.Field(
                    .invalidField,
                    at: "/expires_at",
                    "This is in the past: the key would never be valid"
                )
                throw Refusal([field])
            }
            let (key, record) = try await self.administration.createKey(body.draft, tenant: id, origin: origin)
            return Self.response(record, secret: key)
        }
        let (record, isNew) = try await self.administration.importKey(key, as: body.draft, tenant: id, origin: origin)
        return Self.response(record, isNew: isNew)
    }

    @Sendable
    private func rotate(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let id = try exchange.tenantID
        let members = try exchange.members(limits: .small)
        var problems = FieldProblems()
        var overlap: Int?
        for member in members where !problems.isFull {
            guard member.keyEquals("overlap_s") else {
                problems.unknown(member.key, among: ["overlap_s"])
                continue
            }
            let pointer = JSONPointer().appending("overlap_s")
            overlap = problems.integer(member.value, in: 0...Self.maxOverlapSeconds, at: pointer)
        }
        guard let overlap, problems.list.isEmpty else { throw problems.orMissing("overlap_s") }
        let (key, record) = try await self.administration.rotateKey(
            exchange.parameters.text("key"),
            tenant: id,
            overlapSeconds: overlap,
            origin: exchange.origin
        )
        return Self.response(record, secret: key)
    }

    @Sendable
    private func revoke(_ exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.administration.revokeKey(
            exchange.parameters.text("key"),
            tenant: exchange.tenantID,
            origin: exchange.origin
        )
        return HTTPServerResponse(status: .noContent)
    }

    private static func response(
        _ record: APIKey.Record,
        secret: APIKey? = nil,
        isNew: Bool = true
    ) -> HTTPServerResponse {
        var writer = JSONWriter()
        writer.write(record, secret: secret)
        var response = HTTPServerResponse(status: isNew ? .created : .ok, json: writer.finish())
        if isNew { response.headers.append(.cacheControl, "no-store") }
        return response
    }
}

extension KeyRoutes {
    /// The body that creates or imports a key.
    private struct Body {
        private enum Member: String, CaseIterable {
            case name, scopes, key
            case topicPrefixes = "topic_prefixes"
            case expiresAt = "expires_at"
        }

        let draft: APIKey.Draft
        /// The key to import; `nil` to create one.
        let key: APIKey?

        init(_ members: JSONMembers) throws(Refusal) {
            var problems = FieldProblems()
            var draft = APIKey.Draft(name: "", scopes: [])
            var imported: APIKey?
            for member in members where !problems.isFull {
                let key = member.key
                let pointer = JSONPointer().appending(key)
                switch key.protocolWord.flatMap(Member.init) {
                case .name:
                    draft.name = problems.label(member.value, at: pointer) ?? ""
                case .scopes:
                    draft.scopes = problems.scopes(member.value, at: pointer)
                case .topicPrefixes:
                    draft.topicPrefixes =
                        problems.strings(member.value, atMost: APIKey.Draft.maxTopicPrefixes, at: pointer) ?? []
                    for (index, prefix) in draft.topicPrefixes.enumerated() where TopicName(prefix) == nil {
                        problems.report(.invalidField, at: pointer.appending(index), "No topic can start like this")
                    }
                case .expiresAt:
                    draft.expiresAt = problems.time(member.value, at: pointer)
                case .key:
                    imported = member.value.string.flatMap { APIKey($0) }
                    if imported == nil {
                        problems.report(
                            .invalidField,
                            at: pointer,
                            "This must be a whole key, fgw_<id>_<secret>_<checksum>; its form or its checksum is wrong"
                        )
                    }
                case nil:
                    problems.unknown(key, among: Member.allCases.map(\.rawValue))
                }
            }
            if draft.scopes.isEmpty, problems.list.isEmpty {
                let scopes = Scope.allCases.map(\.rawValue).joined(separator: ", ")
                problems.report(
                    .invalidField,
                    at: JSONPointer().appending("scopes"),
                    "This must list some of: \(scopes)"
                )
            }
            guard problems.list.isEmpty else { throw Refusal(problems.list) }
            self.draft = draft
            self.key = imported
        }
    }
}

extension FieldProblems {
    mutating func time(_ value: JSONValue, at pointer: JSONPointer) -> Timestamp? {
        guard let time = value.string.flatMap({ Timestamp(rfc3339: $0) }) else {
            self.report(.invalidField, at: pointer, "This must be a time such as 2026-03-01T12:00:00Z")
            return nil
        }
        return time
    }

    fileprivate mutating func scopes(_ value: JSONValue, at pointer: JSONPointer) -> Set<Scope> {
        // More elements than scopes can't be valid.
        guard let elements = value.elements, elements.count <= Scope.allCases.count else { return [] }
        var scopes: Set<Scope> = []
        for (index, element) in zip(0..., elements) {
            if let scope = self.word(element, as: Scope.self, at: pointer.appending(index)) { scopes.insert(scope) }
        }
        return scopes
    }
}

extension JSONWriter {
    /// Writes a key's record. It holds the key itself only when the key is created.
    fileprivate mutating func write(_ record: APIKey.Record, secret: APIKey?) {
        self.beginObject()
        self.member("id", record.id)
        if let secret { self.member("key", secret.secret.revealText()) }
        self.member("name", record.name)
        self.member("scopes", record.scopes.map(\.rawValue).sorted())
        self.member("topic_prefixes", record.topicPrefixes)
        self.member("created_at", record.createdAt.rfc3339)
        if let expiresAt = record.expiresAt { self.member("expires_at", expiresAt.rfc3339) }
        if let revokedAt = record.revokedAt { self.member("revoked_at", revokedAt.rfc3339) }
        self.endObject()
    }
}
