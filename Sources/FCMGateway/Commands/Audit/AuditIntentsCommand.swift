import ArgumentParser
import Foundation
import GatewayCore
import GatewayService
import GatewayStorage

/// `audit intents`: lists what was begun and of which no outcome is recorded.
struct AuditIntentsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "intents",
        abstract: "Print intents that no outcome followed.",
        discussion: """
            Reads the store directly. In strict mode each send leaves two records, and so does each change by an operator \
            in any mode. An intent alone says that the gateway was killed meanwhile, and that the message may have been \
            sent. One JSON record a line, oldest first; while a gateway serves, what is under way is among them.
            """
    )

    @OptionGroup var store: AuditStoreOptions

    private static let chunk = 1_000

    func run() async throws {
        let configuration = try self.store.load()
        try await GatewayError.reporting {
            let database = try SQLiteReadOnlyDatabase(path: configuration.databasePath)
            let store = SQLAuditStore(database: database)
            var intents = AuditIntents()
            for head in try await store.heads() {
                var last = 0
                while true {
                    let records = try await store.records(of: head.writer, after: last, limit: Self.chunk)
                    for record in records { intents.take(record) }
                    guard let end = records.last?.sequence, end > last else { break }
                    last = end
                }
            }
            var lines = LineOutput(.standardOutput)
            for record in intents.withoutOutcome { try lines.write(AuditExportLine.record(record)) }
            try lines.flush()
        }
    }
}
