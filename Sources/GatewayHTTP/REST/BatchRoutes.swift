import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Batches of a tenant: `/v1/tenants/{tenant}/batches`.
struct BatchRoutes {
    private static let path = "/v1/tenants/{tenant}/batches"
    private static let one = Self.path + "/{batch}"
    private static let maxResults = 1_000

    let batches: Batches

    var endpoints: [any Endpoint] {
        [
            Handler(.post, Self.path, action: .batchCreate, bodyLimit: Route.largeBody, acceptsKey: true, self.create),
            Handler(.get, Self.path, action: .batchGet, self.list),
            Handler(.get, Self.one, action: .batchGet, self.get),
            Handler(.delete, Self.one, action: .batchDelete, self.delete),
            Handler(.put, Self.one + "/parts/{part}", action: .batchPart, bodyLimit: Route.largeBody, self.putPart),
            Handler(.post, Self.one + "/start", action: .batchStart, self.start),
            Handler(.post, Self.one + "/pause", action: .batchPause) { try await self.change($0, .batchPause) },
            Handler(.post, Self.one + "/resume", action: .batchResume) { try await self.change($0, .batchResume) },
            Handler(.post, Self.one + "/cancel", action: .batchCancel) { try await self.change($0, .batchCancel) },
            Handler(.get, Self.one + "/results", action: .batchResults, self.results),
        ]
    }

    // MARK: Creation

    @Sendable
    private func create(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.sender
        let body = try BatchBody(exchange.request.body, exchange.members(), at: exchange.time)
        let (batch, isNew) = try await self.batches.create(body.draft, key: exchange.idempotencyKey, by: caller)
        return .accepted(batch, by: caller, isNew: isNew)
    }

    @Sendable
    private func putPart(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.sender
        guard let number = Int(digits: exchange.parameters.text("part")), (1...Batches.maxParts).contains(number) else {
            throw Refusal(.invalidField, "A part's number is from 1 to \(Batches.maxParts)")
        }
        // A list of tokens may have more members than other bodies.
        let part = try PartBody(exchange.members())
        let batch = try await self.batches.add(
            part: number,
            part.kind,
            part.recipients,
            request: Array(exchange.request.body.readableBytesView),
            to: exchange.batchID,
            by: caller
        )
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("part", number)
        writer.member("recipients", part.recipients.count)
        writer.member("total", batch.counts.total)
        writer.endObject()
        return HTTPServerResponse(json: writer.finish())
    }

    @Sendable
    private func start(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.sender
        var problems = FieldProblems()
        var (parts, recipients): (Int?, Int?)
        for member in try exchange.members() {
            let pointer = JSONPointer().appending(member.key)
            switch member.key {
            case "parts": parts = problems.integer(member.value, in: 1...Batches.maxParts, at: pointer)
            case "recipients": recipients = problems.integer(member.value, in: 1...10_000_000, at: pointer)
            default: problems.unknown(member.key, among: ["parts", "recipients"])
            }
        }
        guard let parts, let recipients, problems.list.isEmpty else {
            throw problems.orMissing(parts == nil ? "parts" : "recipients")
        }
        let change = BatchChange.start(parts: parts, recipients: recipients, keyID: caller.principal.key.id)
        return .shown(try await self.batches.apply(change, .batchStart, to: exchange.batchID, by: caller), by: caller)
    }

    // MARK: Changes

    private func change(_ exchange: Exchange, _ action: AuditRecord.Action) async throws -> HTTPServerResponse {
        let caller = try action == .batchResume ? exchange.sender : exchange.caller
        let change: BatchChange =
            switch action {
            case .batchPause: .pause(.caller)
            case .batchResume: .resume(keyID: caller.principal.key.id)
            default: .cancel(.caller)
            }
        return .shown(try await self.batches.apply(change, action, to: exchange.batchID, by: caller), by: caller)
    }

    @Sendable
    private func delete(_ exchange: Exchange) async throws -> HTTPServerResponse {
        try await self.batches.delete(exchange.batchID, by: exchange.caller)
        return HTTPServerResponse(status: .noContent)
    }

    // MARK: Reading

    @Sendable
    private func get(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        return .shown(try await self.batches.batch(exchange.batchID, of: caller.profile.id), by: caller)
    }

    @Sendable
    private func list(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        return try await exchange.batchPage(of: caller.profile.id, self.batches) { $0.write($1, by: caller) }
    }

    @Sendable
    private func results(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        let query = try exchange.query(["outcome", "cursor", "limit"])
        let limit = query.text("limit").map { Int(digits: $0) ?? 0 } ?? 100
        guard (1...Self.maxResults).contains(limit) else {
            throw Refusal(.invalidField, "limit must be a whole number from 1 to \(Self.maxResults)")
        }
        let batch = try await self.batches.batch(exchange.batchID, of: caller.profile.id)
        let after = try query.cursor()
            .map { text throws(Refusal) in
                let numbers = text.split(separator: "/").compactMap { Int(digits: $0) }
                guard numbers.count == 2 else { throw Cursor.refusal }
                return (chunk: numbers[0], place: numbers[1])
            }
        let page = try await self.batches.results(
            of: batch,
            query.word("outcome", of: Batches.Outcome.self),
            after: after,
            limit: limit,
            by: caller
        )
        let cursor = page.next.map { Cursor.text(of: "\($0.chunk)/\($0.place)") }
        guard exchange[.accept]?.contains("application/x-ndjson") == true else {
            var writer = JSONWriter()
            writer.beginObject()
            writer.beginArray("results")
            for line in page.lines { writer.write(line, of: batch.kind) }
            writer.endArray()
            if let cursor { writer.member("next_cursor", cursor) }
            writer.endObject()
            return HTTPServerResponse(json: writer.finish())
        }
        var text = ByteBuffer()
        for line in page.lines {
            var writer = JSONWriter()
            writer.write(line, of: batch.kind)
            text.writeImmutableBuffer(writer.finish())
            text.writeInteger(UInt8(ascii: "\n"))
        }
        var response = HTTPServerResponse(status: .ok, body: text)
        response.headers.append(.contentType, "application/x-ndjson")
        if let cursor { response.headers.append(.nextCursor, cursor) }
        return response
    }
}

/// Batches of all tenants, for operators.
struct AdminBatchRoutes {
    private static let path = "/admin/v1/batches"

    let batches: Batches

    var endpoints: [any Endpoint] {
        let one = Self.path + "/{batch}"
        return [
            Handler(.get, Self.path) { exchange in
                try await exchange.batchPage(of: nil, self.batches) { $0.write($1, by: nil) }
            },
            Handler(.post, one + "/pause") { try await self.change($0, .pause(.byOperator), .batchPause) },
            Handler(.post, one + "/resume") { try await self.change($0, .resume(keyID: nil), .batchResume) },
            Handler(.post, one + "/cancel") { try await self.change($0, .cancel(.byOperator), .batchCancel) },
        ]
    }

    private func change(
        _ exchange: Exchange,
        _ change: BatchChange,
        _ action: AuditRecord.Action
    ) async throws -> HTTPServerResponse {
        let batch = try await self.batches.apply(change, action, to: exchange.batchID, by: exchange.origin)
        return .shown(batch, by: nil)
    }
}

extension Exchange {
    /// The caller of a route that begins sends.
    ///
    /// - Throws: `forbidden` for a key that may not send.
    fileprivate var sender: Caller {
        get throws(Refusal) {
            let caller = try self.caller
            guard caller.principal.has(.sendMessages) else { throw Refusal(lacking: .sendMessages) }
            return caller
        }
    }

    fileprivate var batchID: String { self.parameters.text("batch") }

    private enum Flag: String, CaseIterable {
        case `true`, `false`
    }

    /// A page of batches, of one tenant or of all.
    fileprivate func batchPage(
        of tenant: TenantID?,
        _ batches: Batches,
        write: (inout JSONWriter, Batch) -> Void
    ) async throws -> HTTPServerResponse {
        let query = try self.query(["state", "label", "messages", "limit", "cursor"])
        var filter = BatchFilter(tenant: tenant)
        filter.state = try query.word("state", of: Batch.State.self)
        filter.label = query.text("label")
        filter.isMessage = try query.word("messages", of: Flag.self) == .true
        filter.after = try query.cursor().map { text throws(Refusal) in try BatchFilter.Place(cursor: text) }
        let limit = try query.limit()
        let list = try await batches.list(filter, limit: limit + 1)
        return .page(
            "batches",
            list,
            limit: limit,
            cursor: \.cursor,
            write: write
        )
    }
}

extension BatchFilter.Place {
    /// Reads the content of a cursor. Throws `invalid_field` for any other text.
    init(cursor text: String) throws(Refusal) {
        let parts = text.split(separator: " ")
        guard parts.count == 2, let microseconds = Int64(parts[0]) else { throw Cursor.refusal }
        self.init(createdAt: Timestamp(microseconds: microseconds), id: String(parts[1]))
    }
}

extension Batch {
    /// The content of a cursor after this batch.
    var cursor: String { "\(self.createdAt.microseconds) \(self.id)" }
}

extension HTTPServerResponse {
    static func accepted(_ batch: Batch, by caller: Caller, isNew: Bool) -> HTTPServerResponse {
        var response = Self.shown(batch, by: caller)
        response.status = .accepted
        response.headers.append(.location, "/v1/tenants/\(batch.tenant.text)/batches/\(batch.id)")
        if !isNew { response.headers.append(.idempotentReplayed, "true") }
        return response
    }

    fileprivate static func shown(_ batch: Batch, by caller: Caller?) -> HTTPServerResponse {
        var writer = JSONWriter(reservingCapacity: 768)
        writer.write(batch, by: caller)
        var response = HTTPServerResponse(json: writer.finish())
        // A hint for callers that ask again until it is over.
        if !batch.state.isOver { response.headers.append(.retryAfter, batch.startedAt == nil ? "30" : "5") }
        return response
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ batch: Batch, by caller: Caller?) {
        self.beginObject()
        self.member("id", batch.id)
        if caller == nil { self.member("tenant", batch.tenant.text) }
        self.member("state", batch.state.rawValue)
        self.member("reason", optional: batch.reason?.rawValue)
        self.member("label", optional: batch.label)
        self.member("due_at", batch.dueAt.rfc3339)
        self.member("expires_at", batch.expiresAt.rfc3339)
        let counts = batch.counts
        self.member("total", counts.total)
        self.member("accepted", counts.accepted)
        self.member("rejected", counts.rejected)
        self.member("unknown", counts.unknown)
        self.member("expired", counts.expired)
        self.member("cancelled", counts.cancelled)
        self.member("waiting", counts.waiting)
        self.member("waiting_until", optional: batch.waitingUntil?.rfc3339)
        self.member("warnings", batch.warnings(by: caller))
        self.member("created_at", batch.createdAt.rfc3339)
        self.member("started_at", optional: batch.startedAt?.rfc3339)
        self.member("finished_at", optional: batch.finishedAt?.rfc3339)
        self.endObject()
    }

    private mutating func member(_ key: StaticString, optional value: String?) {
        self.key(key)
        if let value { self.string(value) } else { self.null() }
    }

    fileprivate mutating func write(_ line: Batches.Line, of kind: Target.Kind) {
        self.beginObject()
        switch kind {
        case .token, .tokens: self.member("token", line.text)
        case .installation, .installations: self.member("fid", line.text)
        case .topic: self.member("topic", line.text)
        case .condition: self.member("condition", line.text)
        case .group: self.member("device_group", line.text)
        }
        self.member("outcome", line.outcome.rawValue)
        switch line.result {
        case .accepted(let acceptance): self.member("message_id", acceptance.messageID)
        case .rejected(let rejection):
            self.member("code", rejection.code.rawValue)
            if let action = rejection.code.action { self.member("action", action.rawValue) }
        case nil: break
        }
        self.endObject()
    }
}

extension Batch {
    /// The texts that warn of consequences that the caller may not intend.
    fileprivate func warnings(by caller: Caller?) -> [String] {
        guard !self.state.isOver, self.startedAt == nil else { return [] }
        var warnings: [String] = []
        if let end = caller?.principal.key.expiresAt, end < self.expiresAt {
            warnings.append("The key expires before the batch; without a successor of its name the batch pauses then")
        }
        // Google asks senders of many messages to avoid these times.
        if self.counts.total > 10_000, self.dueAt.afterPeak != self.dueAt {
            warnings.append("FCM is busiest within two minutes of each quarter of an hour; set avoid_peaks")
        }
        return warnings
    }
}
