import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Shows a tenant its audit records.
struct AuditRoutes {
    let audit: AuditAccess
    let cursors: AuditQuery.CursorSealer

    var endpoints: [any Endpoint] {
        [Handler(.get, "/v1/tenants/{tenant}/audit", action: .auditList, self.list)]
    }

    @Sendable
    private func list(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        let query = try exchange.query(AuditQuery.parameters)
        var auditQuery = try AuditQuery(query, profile: caller.profile)
        let uid = caller.profile.uid
        (auditQuery.tenant, auditQuery.tenantUID) = (caller.profile.id.text, uid)
        auditQuery.before = try self.cursors.position(query, for: uid)
        let answer = try await self.audit.page(auditQuery, for: caller)
        var response =
            switch answer.result {
            case .failure(let refusal): refusal.response
            case .success(let page): await self.cursors.response(page, for: uid)
            }
        response.headers.append(answer.quotas)
        return response
    }
}

/// Shows operators the audit of all tenants.
struct AdminAuditRoutes {
    let audit: AuditAccess
    let administration: Administration
    let cursors: AuditQuery.CursorSealer

    var endpoints: [any Endpoint] {
        [Handler(.get, "/admin/v1/audit", self.list)]
    }

    @Sendable
    private func list(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let query = try exchange.query(AuditQuery.parameters.union(["tenant"]))
        // A deleted tenant's records stay readable, but its pseudonyms can no longer be computed.
        let tenant = query.text("tenant")
        let profile = tenant.flatMap { TenantID($0) }.flatMap { try? self.administration.profile(of: $0) }
        var auditQuery = try AuditQuery(query, profile: profile)
        auditQuery.tenant = tenant
        auditQuery.before = try self.cursors.position(query, for: nil)
        let page = try await self.audit.page(auditQuery, of: profile, origin: exchange.origin)
        return await self.cursors.response(page, for: nil)
    }
}

extension AuditQuery {
    static let parameters: Set<String> = [
        "from", "to", "action", "outcome", "code", "principal", "target", "message", "request_id", "limit", "cursor",
    ]

    /// Reads the filters of a query, for a tenant or an operator.
    init(_ query: QueryReader, profile: TenantProfile?) throws(Refusal) {
        self.init(limit: try query.limit())
        self.from = try query.time("from")
        self.to = try query.time("to")
        self.action = try query.word("action", of: AuditRecord.Action.self)?.rawValue
        self.outcome = try query.word("outcome", of: AuditRecord.Outcome.self)
        self.code = query.text("code")
        self.principal = query.text("principal")
        self.requestID = query.text("request_id")
        self.messageID = query.text("message")
        if let target = query.text("target") {
            guard let profile else {
                throw Refusal(
                    .invalidField,
                    "target needs a tenant that exists: pseudonyms differ from tenant to tenant"
                )
            }
            self.target = profile.pseudonymizer.pseudonym(of: target)
        }
    }
}

extension AuditQuery.CursorSealer {
    /// Returns the position that a cursor continues from; throws `invalid_field` for a cursor of another caller's list.
    func position(_ query: QueryReader, for uid: UInt64?) throws(Refusal) -> AuditQuery.Cursor? {
        guard let text = query.text("cursor") else { return nil }
        guard let position = Cursor.bytes(of: text).flatMap({ self.open($0, for: uid) }) else { throw Cursor.refusal }
        return position
    }

    /// Returns the answer with a page of records. `uid` names the tenant, and `nil` stands for an operator.
    ///
    /// Rendered off the event loop, since four mebibytes of records take tens of milliseconds.
    fileprivate func response(_ page: AuditQuery.Page, for uid: UInt64?) async -> HTTPServerResponse {
        let text = await computeOffLoop { self.text(page, for: uid) }
        return HTTPServerResponse(json: text)
    }

    private func text(_ page: AuditQuery.Page, for uid: UInt64?) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 64 + page.records.count * 512)
        writer.beginObject()
        writer.beginArray("records")
        for record in page.records {
            writer.beginObject()
            writer.members(of: record, for: uid == nil ? .admin : .tenant)
            writer.endObject()
        }
        writer.endArray()
        if let next = page.next.flatMap({ self.seal($0, for: uid) }) {
            writer.member("next_cursor", Cursor.text(of: next))
        }
        writer.endObject()
        return writer.finish()
    }
}
