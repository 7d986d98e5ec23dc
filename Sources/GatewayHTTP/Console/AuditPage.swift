import EventLoopHTTP
import FCMModel
import GatewayCore

/// The audit with its filters. The records of one device are on its own page.
extension ConsolePages {
    static let recordsPerPage = 25
    private static let filters = [
        "tenant", "from", "to", "action", "outcome", "code", "principal", "message", "request_id",
    ]

    @Sendable
    func auditList(_ request: ConsoleRequest) async throws -> ConsolePage {
        var query = AuditQuery(limit: Self.recordsPerPage)
        query.tenant = request.fields.text("tenant")
        (query.from, query.to) = (try request.fields.time("from"), try request.fields.time("to"))
        query.action = try request.fields.word("action", of: AuditRecord.Action.self)?.rawValue
        query.outcome = try request.fields.word("outcome", of: AuditRecord.Outcome.self)
        (query.code, query.principal) = (request.fields.text("code"), request.fields.text("principal"))
        (query.messageID, query.requestID) = (request.fields.text("message"), request.fields.text("request_id"))
        if let text = request.fields.text("cursor") {
            guard let place = Cursor.bytes(of: text).flatMap({ self.cursors.open($0, for: nil) }) else {
                throw Cursor.refusal
            }
            query.before = place
        }
        let profile = query.tenant.flatMap { TenantID($0) }.flatMap { try? self.administration.profile(of: $0) }
        let page = try await self.audit.page(query, of: profile, origin: request.exchange.origin)
        let next = page.next.flatMap { self.cursors.seal($0, for: nil) }.map { Cursor.text(of: $0) }
        let (actions, outcomes) = (AuditRecord.Action.allCases, AuditRecord.Outcome.allCases)
        let content: HTML = """
            <form class="filters">\(HTML.field("Tenant", "tenant", query.tenant))\
            \(HTML.choice("Action", "action", actions.map(\.rawValue), query.action))\
            \(HTML.choice("Outcome", "outcome", outcomes.map(\.rawValue), query.outcome?.rawValue))\
            \(HTML.field("Code", "code", query.code))\(HTML.field("By", "principal", query.principal))\
            \(HTML.field("Message", "message", query.messageID))\(HTML.field("Request", "request_id", query.requestID))\
            \(HTML.field("From (such as 2026-03-01T12:00:00Z)", "from", request.fields.text("from")))\
            \(HTML.field("Before", "to", request.fields.text("to")))<button>Filter</button></form>
            \(Self.table("Records, the latest first", page.records, empty: page.next == nil
                ? "No record is found." : "The newest part has no such record; the next page goes on."))
            \(HTML.next("/console/audit", Self.filters.map { ($0, request.fields.text($0)) }, cursor: next))
            """
        return ConsolePage("Audit", content)
    }

    static func table(_ caption: String, _ records: [ChainedAuditRecord], empty: String) -> HTML {
        let columns = ["Time (UTC)", "Tenant", "By", "Action", "Outcome", "Code", "Object or message"]
        return .table(caption, columns, records.map(\.record), empty: empty) { record in
            let isGood = [.accepted, .done, .intent].contains(record.outcome)
            let count: HTML? = record.recipients > 1 ? " \(record.accepted) of \(record.recipients)" : nil
            return [
                .moment(record.time), .short(record.tenant), .short(record.principal), "\(record.action)",
                "\(HTML.state(record.outcome.rawValue, isGood: isGood))\(count)", "\(record.code)",
                .short(record.object ?? record.messageID),
            ]
        }
    }
}
