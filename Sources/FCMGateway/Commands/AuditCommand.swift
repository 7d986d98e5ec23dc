import ArgumentParser
import Foundation

/// `audit`: reads the audit trail.
struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Read the audit trail.",
        subcommands: [
            Tail.self, Query.self, AuditVerifyCommand.self, AuditExportCommand.self, AuditIntentsCommand.self,
            AuditPseudonymCommand.self, AuditPublicKeyCommand.self,
        ]
    )

    /// `audit query`.
    struct Query: AdminVerb {
        static let configuration = CommandConfiguration(abstract: "Print records, newest first.")

        @OptionGroup var filter: AuditFilter
        @Option(name: .long, help: "Only records from then on, as in 2026-01-31T12:00:00Z.")
        var from: TimestampArgument?
        @Option(name: .long, help: "Only records before then.") var to: TimestampArgument?
        @OptionGroup var list: ListOptions
        @OptionGroup var admin: AdminOptions

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            var query = self.filter.query
            if let from = self.from { query.append((name: "from", value: from.utc)) }
            if let to = self.to { query.append((name: "to", value: to.utc)) }
            let records = try await client.list(["audit"], member: "records", query: query, limit: self.list.limit)
            let columns = AuditTrail.columns(of: records)
            try print(.list(records, member: "records", columns: columns, json: self.wantsJSON))
        }
    }

    /// `audit tail`.
    struct Tail: AdminVerb {
        static let configuration = CommandConfiguration(
            abstract: "Print the newest records, oldest of them first.",
            discussion: "With --output json, one record a line."
        )

        /// How often --follow asks for more.
        static let pollInterval = Duration.seconds(2)

        @OptionGroup var filter: AuditFilter
        @Option(name: [.customShort("n"), .long], help: "How many records to begin with.") var lines = 20
        @Flag(name: [.short, .long], help: "Go on printing records as they come.") var follow = false
        @OptionGroup var admin: AdminOptions

        func validate() throws {
            if !(1...AdminClient.maxPageElements).contains(self.lines) {
                throw ValidationError("--lines must be from 1 to \(AdminClient.maxPageElements).")
            }
        }

        func perform(_ client: AdminClient, print: (CommandOutput) throws -> Void) async throws {
            var trail = AuditTrail()
            // To follow, a whole page is remembered: the polls read as much again, and must not take what is older
            // than the lines printed here for new.
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
                try self.show(try await self.poll(client, &trail).filter(self.isShown), print)
            }
        }

        /// Whether a record that came is more than the trace of following: each poll is recorded itself.
        private func isShown(_ record: JSONValue) -> Bool {
            self.filter.action != nil || record["action"] != .string("audit.list")
        }

        /// Reads pages until one reaches what was already printed.
        func poll(_ client: AdminClient, _ trail: inout AuditTrail) async throws -> [JSONValue] {
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
                let line = self.wantsJSON ? (try? record.encoded()).map { String(decoding: $0, as: UTF8.self) } : nil
                try print(CommandOutput(line ?? AuditTrail.line(record)))
            }
        }
    }
}
