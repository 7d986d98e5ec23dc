import ArgumentParser
import GatewayCore
import GatewayService
import StrictJSON

/// `audit`: reads the audit trail.
struct AuditCommand: ParsableCommand {
    /// The options that filter audit records.
    struct Filter: ParsableArguments {
        @Option(name: .long, help: "Only this tenant's records.") var tenant: TenantID?
        @Option(name: .long, help: "Only records of this action.") var action: String?
        @Option(name: .long, help: "Only records with this outcome.") var outcome: String?
        @Option(name: .long, help: "Only records with this refusal or failure code.") var code: String?
        @Option(name: .long, help: "Only actions by this principal: a key's id, admin, gateway, leader or command.")
        var principal: String?
        @Option(name: .long, help: "Only records of the request with this id.") var requestID: String?
        @Option(name: .long, help: "Only records about this token or topic.") var target: String?
        @Option(name: .long, help: "Only records about the message with this id.") var message: String?

        /// The API's parameters; the API finds a target by its pseudonym.
        var query: [(name: String, value: String)] {
            [
                ("tenant", self.tenant?.text), ("action", self.action), ("outcome", self.outcome),
                ("code", self.code), ("principal", self.principal), ("request_id", self.requestID),
                ("target", self.target), ("message", self.message),
            ]
            .compactMap { name, value in value.map { (name: name, value: $0) } }
        }
    }

    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Read the audit trail.",
        subcommands: [
            Tail.self, Query.self, AuditVerifyCommand.self, AuditExportCommand.self, AuditIntentsCommand.self,
            AuditPseudonymCommand.self, AuditPublicKeyCommand.self,
        ]
    )

    struct Query: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "query",
            abstract: "Print records, newest first.",
            discussion: """
                Prints page after page, by default at most 1,000 records. With --output json, each line is a record.

                Example:
                  fcm-gateway audit query --tenant shop --outcome rejected --limit 20
                """
        )

        @OptionGroup var filter: Filter
        @Option(name: .long, help: "Only records from this time on, such as 2026-01-31 or 2026-01-31T12:00:00Z.")
        var from: Timestamp?
        @Option(name: .long, help: "Only records before this time.") var to: Timestamp?
        @Option(name: .long, help: "The maximum number of records to print.") var limit = 1_000
        @Flag(name: .long, help: "Print all matching records.") var all = false
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            if self.limit < 1 { throw ValidationError("--limit must be at least 1.") }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            var query = self.filter.query
            if let from = self.from { query.append((name: "from", value: from.rfc3339)) }
            if let to = self.to { query.append((name: "to", value: to.rfc3339)) }
            let limit = self.all ? nil : self.limit
            var count = 0
            let isCutShort = try await client.forEachPage(["audit"], member: "records", query: query, limit: limit) {
                if !$0.isEmpty { try print(AuditTrail.page($0, json: self.wantsJSON)) }
                count += $0.count
            }
            if count == 0 { try print(CommandOutput("", remark: "no records")) }
            if isCutShort {
                try print(CommandOutput("", remark: "\(count) records; more match: use --limit or --all"))
            }
        }
    }

    struct Tail: AdminVerb {
        static let configuration = CommandConfiguration(
            commandName: "tail",
            abstract: "Print the newest records, in the order of time.",
            discussion: """
                With --output json, each line is a record. With --follow, the command waits while the gateway does not \
                answer, as during a restart, and then continues where it stopped.

                Example:
                  fcm-gateway audit tail -n 20 -f
                """
        )

        static let pollInterval = Duration.seconds(2)

        @OptionGroup var filter: Filter
        @Option(name: [.customShort("n"), .long], help: "The number of records to begin with.") var lines = 20
        @Flag(name: [.short, .long], help: "Continue with new records as they arrive.") var follow = false
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            if !(1...AdminClient.maxPageElements).contains(self.lines) {
                throw ValidationError("--lines must be from 1 to \(AdminClient.maxPageElements).")
            }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            var trail = AuditTrail()
            // With --follow, a whole page is remembered, not only the printed lines. Polls read that page again, and
            // its older records must not count as new.
            let first = try await client.page(
                ["audit"],
                member: "records",
                query: self.filter.query,
                limit: self.follow ? AdminClient.maxPageElements : self.lines,
                cursor: nil
            )
            try self.show(trail.unseen(first.elements).suffix(self.lines), print)
            while self.follow {
                try await Task.sleep(for: Self.pollInterval)
                try await self.poll(client, &trail, print: print)
            }
        }

        /// Prints the new records. If the gateway does not answer, reports that once and leaves the trail unchanged.
        func poll(
            _ client: AdminClient,
            _ trail: inout AuditTrail,
            print: (CommandOutput) throws -> Void
        ) async throws {
            var read = trail
            let records: [JSONValue]
            do {
                records = try await self.unseen(client, &read)
            } catch let failure where Self.mayPass(failure) {
                if !trail.isInterrupted { try print(CommandOutput("", remark: "\(failure)\nwaiting for the gateway")) }
                trail.isInterrupted = true
                return
            }
            if trail.isInterrupted { try print(CommandOutput("", remark: "the gateway answers again")) }
            read.isInterrupted = false
            trail = read
            try self.show(records.filter(self.isShown), print)
        }

        /// True if the cause may be temporary: a restarting gateway, or a proxy in front of it.
        private static func mayPass(_ failure: any Error) -> Bool {
            guard let refusal = failure as? APIError else { return failure is CommandFailure }
            return refusal.status >= 500 || refusal.status == 429
        }

        /// False for the records that the polls themselves cause.
        private func isShown(_ record: JSONValue) -> Bool {
            self.filter.action != nil || record["action"]?.string != "audit.list"
        }

        private func unseen(_ client: AdminClient, _ trail: inout AuditTrail) async throws -> [JSONValue] {
            var pages: [[JSONValue]] = []
            var cursor: String?
            while true {
                let page = try await client.page(
                    ["audit"],
                    member: "records",
                    query: self.filter.query,
                    limit: AdminClient.maxPageElements,
                    cursor: cursor
                )
                let fresh = trail.unseen(page.elements)
                pages.append(fresh)
                let isCaughtUp = fresh.count < page.elements.count
                guard !isCaughtUp, let next = page.nextCursor, next != cursor else { break }
                cursor = next
            }
            return pages.reversed().flatMap(\.self)
        }

        private func show(_ records: some Sequence<JSONValue>, _ print: (CommandOutput) throws -> Void) throws {
            for record in records {
                var output = CommandOutput(self.wantsJSON ? record.canonicalText : AuditTrail.line(record))
                output.isContinued = self.follow
                try print(output)
            }
        }
    }
}

/// Remembers the audit records that were read, so that polls of a list print no record twice.
struct AuditTrail {
    /// The maximum number of remembered records; enough for the pages that one poll reads again.
    static let maxRemembered = 20_000

    /// True if the last poll got no answer.
    var isInterrupted = false

    /// The identities of records: their places in the chains, or the whole text of a record without a place.
    private var seen: Set<String> = []
    private var order: [String] = []

    /// Reads a page, newest first. Returns its new records, oldest first.
    mutating func unseen(_ page: [JSONValue]) -> [JSONValue] {
        var fresh: [JSONValue] = []
        for record in page.reversed() {
            let identity = Self.identity(record)
            guard self.seen.insert(identity).inserted else { continue }
            self.order.append(identity)
            fresh.append(record)
        }
        if self.order.count > Self.maxRemembered {
            let surplus = self.order.count - Self.maxRemembered
            self.seen.subtract(self.order.prefix(surplus))
            self.order.removeFirst(surplus)
        }
        return fresh
    }

    /// Returns one of several pages, as a table or as one record per line.
    static func page(_ records: [JSONValue], json: Bool) -> CommandOutput {
        var output =
            if json {
                CommandOutput(records.map(\.canonicalText).joined(separator: "\n"))
            } else {
                CommandOutput(TextTable(columns: Self.columns(of: records), objects: records).styled)
            }
        output.isContinued = true
        return output
    }

    /// The columns of a table: the usual members that occur, or all members if no usual member does.
    static func columns(of records: [JSONValue]) -> [String] {
        let usual = [
            "time", "seq", "tenant", "principal", "action", "outcome", "code", "target_kind", "targets",
            "message", "request_id",
        ]
        let names = Set(records.flatMap { Self.names($0) })
        let columns = usual.filter { names.contains($0) }
        return columns.isEmpty ? names.sorted() : columns
    }

    /// A record on one line: the time, then all other non-empty members by name.
    static func line(_ record: JSONValue) -> String {
        let members = Self.names(record).filter { $0 != "time" }.sorted()
            .compactMap { name -> String? in
                guard let cell = record[name]?.cell, !cell.isEmpty else { return nil }
                return "\(name)=\(cell)"
            }
        return ([record["time"]?.cell].compactMap(\.self) + members).joined(separator: " ")
    }

    private static func names(_ record: JSONValue) -> [String] {
        record.members?.map(\.key) ?? []
    }

    private static func identity(_ record: JSONValue) -> String {
        guard let writer = record["writer"]?.cell, let sequence = record.integer("seq") else {
            return record.canonicalText
        }
        return "\(writer) \(sequence)"
    }
}
