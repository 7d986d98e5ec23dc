import EventLoopHTTP
import FCMModel
import GatewayCore

/// The batches, one batch with its progress, and its results.
extension ConsolePages {
    private static let batchesPerPage = 25

    private static func path(of batch: Batch) -> String { "/console/tenants/\(batch.tenant.text)/batches/\(batch.id)" }

    private static func name(of batch: Batch) -> String { batch.label.map { String($0.prefix(80)) } ?? batch.id }

    @Sendable
    func batchList(_ request: ConsoleRequest) async throws -> ConsolePage {
        var filter = BatchFilter()
        let (tenant, state) = (request.fields.text("tenant"), try request.fields.word("state", of: Batch.State.self))
        if let tenant {
            guard let id = TenantID(tenant) else { throw Refusal(.notFound, "No tenant can have this name") }
            filter.tenant = id
        }
        filter.state = state
        filter.after = try request.fields.cursor().map { text throws(Refusal) in try BatchFilter.Place(cursor: text) }
        let found = try await self.batches.list(filter, limit: Self.batchesPerPage + 1)
        let page = found.prefix(Self.batchesPerPage)
        let more = found.count > page.count ? page.last.map { Cursor.text(of: $0.cursor) } : nil
        let columns = ["Batch", "Tenant", "State", "Progress", "Failed", "Due (UTC)"]
        let content: HTML = """
            <form class="filters">\(HTML.field("Tenant", "tenant", tenant))\
            \(HTML.choice("State", "state", Batch.State.allCases.map(\.rawValue), state?.rawValue))<button>Filter</button></form>
            \(HTML.table("Batches", columns, page, empty: "No batch is found.") { batch in
                [
                    "<a href=\"\(Self.path(of: batch))\">\(Self.name(of: batch))</a>", .tenant(batch.tenant.text),
                    Self.state(of: batch), Self.progress(of: batch),
                    "\(batch.counts.rejected + batch.counts.unknown)", .moment(batch.dueAt),
                ]
            })
            \(HTML.next("/console/batches", [("tenant", tenant), ("state", state?.rawValue)], cursor: more))
            """
        return ConsolePage("Batches", content, isLive: true)
    }

    private static func state(of batch: Batch) -> HTML {
        let reason: HTML? = batch.reason.map { " (\($0.rawValue))" }
        return "\(HTML.state(batch.state.rawValue, isGood: batch.state != .paused && batch.state != .expired))\(reason)"
    }

    private static func progress(of batch: Batch) -> HTML {
        let (total, done) = (batch.counts.total, batch.counts.total - batch.counts.waiting)
        return """
            <progress max="\(max(1, total))" value="\(done)" aria-label="Progress"></progress> \(done) of \(total)
            """
    }

    @Sendable
    func batch(_ request: ConsoleRequest) async throws -> ConsolePage {
        let batch = try await self.found(request)
        let counts = batch.counts
        let acts = request.exchange.operator.map { $0.role >= .operator } ?? false ? Self.acts(on: batch, request) : nil
        let content: HTML = """
            <p>\(Self.progress(of: batch))</p>
            \(HTML.facts([
                ("Id", "<code>\(batch.id)</code>"), ("Tenant", .tenant(batch.tenant.text)),
                ("State", Self.state(of: batch)), ("Label", .short(batch.label)),
                ("Accepted", "\(counts.accepted)"), ("Rejected", "\(counts.rejected)"), ("Unknown", "\(counts.unknown)"),
                ("Expired", "\(counts.expired)"), ("Cancelled", "\(counts.cancelled)"), ("Waiting", "\(counts.waiting)"),
                ("Waits until (UTC)", .moment(batch.waitingUntil)), ("Due (UTC)", .moment(batch.dueAt)),
                ("Expires (UTC)", .moment(batch.expiresAt)), ("Started (UTC)", .moment(batch.startedAt)),
                ("Finished (UTC)", .moment(batch.finishedAt)), ("Key", "<code>\(batch.keyID)</code>"),
            ]))\(acts)
            """
        return ConsolePage("Batch \(Self.name(of: batch))", content, isLive: true)
    }

    private func found(_ request: ConsoleRequest) async throws -> Batch {
        try await self.batches.batch(request.exchange.parameters.text("batch"), of: request.exchange.tenantID)
    }

    private static func acts(on batch: Batch, _ request: ConsoleRequest) -> HTML {
        let path = Self.path(of: batch)
        func act(_ name: String, _ text: String) -> HTML {
            "<form method=\"post\" action=\"\(path)/\(name)\">\(request.formToken)<button>\(text)</button></form>"
        }
        let results: HTML = "<p><a href=\"\(path)/results\">Results</a></p>"
        guard !batch.state.isOver else { return results }
        let pause: HTML? =
            batch.state == .open ? nil : batch.state == .paused ? act("resume", "Resume") : act("pause", "Pause")
        return """
            \(results)<div class="acts">\(pause)
            <details><summary>Cancel…</summary><p>It can't be resumed.</p>\(act("cancel", "Cancel the batch"))</details></div>
            """
    }

    @Sendable
    func change(
        _ request: ConsoleRequest,
        _ change: BatchChange,
        _ action: AuditRecord.Action
    ) async throws -> ConsolePage {
        let batch = try await self.found(request)
        _ = try await self.batches.apply(change, action, to: batch.id, by: request.exchange.origin)
        return ConsolePage(redirectTo: Self.path(of: batch))
    }

    @Sendable
    func results(_ request: ConsoleRequest) async throws -> ConsolePage {
        let outcome = try request.fields.word("outcome", of: Batches.Outcome.self)
        let after = try request.fields.cursor()
            .map { text throws(Refusal) in
                let parts = text.split(separator: " ").compactMap { Int(digits: $0) }
                guard parts.count == 2 else { throw Cursor.refusal }
                return (chunk: parts[0], place: parts[1])
            }
        let batch = try await self.found(request)
        let caller = try request.caller(for: self.administration.profile(of: batch.tenant))
        let page = try await self.batches.results(of: batch, outcome, after: after, limit: 50, by: caller)
        let (path, words) = (Self.path(of: batch), Batches.Outcome.allCases.map(\.rawValue))
        let more = page.next.map { Cursor.text(of: "\($0.chunk) \($0.place)") }
        let content: HTML = """
            <p><a href="\(path)">The batch</a></p>
            <form class="filters">\(HTML.choice("Outcome", "outcome", words, outcome?.rawValue))<button>Filter</button></form>
            \(HTML.table("Results", ["Recipient", "Outcome", "Code"], page.lines, empty: "This page has no result.") { line in
                // Enough to tell recipients apart, and too little to send to.
                let count = min(8, line.text.count / 3)
                return [
                    "<code>\(String(line.text.prefix(count)))…\(String(line.text.suffix(count / 2)))</code>",
                    "\(line.outcome.rawValue)", "\(line.result?.code?.rawValue)",
                ]
            })
            \(HTML.next("\(path)/results", [("outcome", outcome?.rawValue)], cursor: more))
            """
        return ConsolePage("Results of \(Self.name(of: batch))", content)
    }
}
