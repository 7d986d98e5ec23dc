import Foundation
import GatewayCore
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Tampering with any part of the audit", .enabled(if: SQL.isAvailable, "sqlite3 or python3 is needed"))
    struct AuditMatrixTests {
        private static let tables = [
            "audit_records", "audit_heads", "audit_checkpoints", "gateway_checkpoint_end", "audit_truncations",
        ]

        /// Other values for a column, by its type.
        private static func others(_ column: String, _ type: String) -> [String] {
            switch type {
            case "INTEGER":
                ["\(column) + 1000000", "-\(column) - 1", "0", "9223372036854775807", "-9223372036854775807 - 1"]
            case "TEXT":
                ["coalesce(\(column), '') || 'x'", "''"]
            default:
                [
                    "CAST(substr(\(column), 1, length(\(column)) - 1) AS BLOB)", "CAST(\(column) || x'00' AS BLOB)",
                    "zeroblob(length(\(column)))",
                    "CAST(x'07' || substr(\(column), 2) AS BLOB)",
                ]
            }
        }

        /// One way to tamper.
        private struct Change {
            let name: String
            let statements: String

            init(_ name: String, _ statements: String) { (self.name, self.statements) = (name, statements) }
        }

        /// Changes each column of some rows of every table, deletes these rows, and empties every table.
        private static func changes(_ store: String) async throws -> [Change] {
            var changes: [Change] = []
            for table in self.tables {
                let query = "SELECT name || ' ' || type || ' ' || pk FROM pragma_table_info('\(table)')"
                let columns = try await SQL.read(store, query).map { $0.split(separator: " ").map(String.init) }
                let keys = columns.filter { $0.last != "0" }.map { $0[0] }
                let order = keys.joined(separator: ", ")
                let count = try #require(
                    try await SQL.read(store, "SELECT count(*) FROM \(table)").first.flatMap { Int($0) }
                )
                #expect(count > 0, "\(table) holds something to change")
                for offset in Set([0, table == "audit_records" ? count / 2 : 0, count - 1]).sorted() {
                    let row = "(\(order)) = (SELECT \(order) FROM \(table) ORDER BY \(order) LIMIT 1 OFFSET \(offset))"
                    changes.append(Change("delete \(table) \(offset)", "DELETE FROM \(table) WHERE \(row)"))
                    for column in columns {
                        for other in self.others(column[0], column[1]) {
                            let text = "UPDATE OR IGNORE \(table) SET \(column[0]) = \(other) WHERE \(row)"
                            changes.append(Change("\(table) \(offset): \(column[0]) = \(other)", text))
                        }
                    }
                }
                changes.append(Change("empty \(table)", "DELETE FROM \(table)"))
            }
            return changes
        }

        private static let unsigned = "DELETE FROM audit_checkpoints; DELETE FROM gateway_checkpoint_end"

        /// The start of a statement that copies a record to a writer and sequence.
        private static func copy(to writer: String, _ sequence: Int) -> String {
            let columns = "time, tenant, tenant_uid, body, hash"
            return "INSERT INTO audit_records SELECT \(writer), \(sequence), \(columns) FROM audit_records"
        }

        private static let firstLeft = "WHERE writer = 3 ORDER BY sequence LIMIT 1"

        // One change per entry; the formatter would put each bracket on its own line.
        // swift-format-ignore
        /// Changes that take several statements or add rows.
        private static let more = [
            Change("drop the latest checkpoint and its mention", """
                DELETE FROM audit_checkpoints WHERE number = (SELECT max(number) FROM audit_checkpoints);
                DELETE FROM gateway_checkpoint_end
                """),
            Change("drop the latest checkpoints, and name the one before as the latest",
                "DELETE FROM audit_checkpoints WHERE number > 5; UPDATE gateway_checkpoint_end SET number = 5"),
            Change("drop everything that was ever signed", "\(Self.unsigned); DELETE FROM audit_truncations"),
            Change("drop the checkpoints, keep the truncations", Self.unsigned),
            Change("exchange two checkpoints", """
                UPDATE audit_checkpoints SET number = -4 WHERE number = 4;
                UPDATE audit_checkpoints SET number = 4 WHERE number = 5;
                UPDATE audit_checkpoints SET number = 5 WHERE number = -4
                """),
            Change("copy a checkpoint behind the latest", """
                INSERT INTO audit_checkpoints SELECT number + 1, content, signature FROM audit_checkpoints
                ORDER BY number DESC LIMIT 1
                """),
            Change("drop the last writer, records, head and all",
                "DELETE FROM audit_records WHERE writer = 4; DELETE FROM audit_heads WHERE writer = 4"),
            Change("insert a record below a truncation", "\(Self.copy(to: "writer", 1)) \(Self.firstLeft)"),
            Change("insert a record of a removed chain", "\(Self.copy(to: "1", 3)) \(Self.firstLeft)"),
            Change("insert a record before the first", "\(Self.copy(to: "4", 0)) LIMIT 1"),
            Change("insert a record far before the first", "\(Self.copy(to: "4", -5_000)) LIMIT 1"),
            Change("move a truncation forward, with the records", """
                UPDATE audit_truncations SET (sequence, hash) = (
                    SELECT sequence, hash FROM audit_records WHERE writer = 4 ORDER BY sequence LIMIT 1
                ) WHERE writer = 3;
                DELETE FROM audit_records WHERE writer = 3 AND sequence <= 9
                """),
            Change("forge a truncation of a chain that has none", """
                INSERT INTO audit_truncations SELECT 4, sequence, hash, time, zeroblob(64) FROM audit_records
                WHERE writer = 4 ORDER BY sequence LIMIT 1;
                DELETE FROM audit_records WHERE writer = 4 AND sequence = 1
                """),
        ]

        /// Rolls the last chain back to an earlier genuine end.
        private static func shortened(to head: AuditHead) -> Change {
            let statements = """
                DELETE FROM audit_records WHERE writer = \(head.writer) AND sequence > \(head.sequence);
                UPDATE audit_heads SET sequence = \(head.sequence), hash = x'\(Hex.text(head.hash))',
                    state = '\(head.state.rawValue)', seal = x'\(Hex.text(head.seal))' WHERE writer = \(head.writer)
                """
            return Change("shorten the last chain, with a genuine older head", statements)
        }

        @Test("audit verify finds changed columns, deleted rows and combined changes in every audit table")
        func everyColumn() async throws {
            try await PrivateDirectory.with(prefersMemory: true) { directory in
                let audit = try await RecordedAudit.make(in: directory)
                let store = "\(audit.data)/gateway.sqlite"
                try await audit.verify().expect(0)
                #expect(try await SQL.read(store, "SELECT count(*) FROM audit_truncations") == ["3"])
                let before = try await Self.dump(store)
                var overlooked: [String] = []
                var tried = 0
                let combined = Self.more + [Self.shortened(to: audit.earlier)]
                for change in combined + (try await Self.changes(store)) {
                    let copy = try directory.copy("data", to: "copy")
                    defer { try? FileManager.default.removeItem(atPath: copy) }
                    // Some changes have no effect or violate a constraint.
                    if try await Self.dump("\(copy)/gateway.sqlite", after: change.statements) == before { continue }
                    tried += 1
                    // Only some changes run the program, because each start takes time.
                    if tried <= combined.count || tried.isMultiple(of: 20) {
                        let outcome = try await audit.verify(copy)
                        if outcome.end != .code(1) || !outcome.output.contains("First bad record: ") {
                            overlooked.append("\(change.name): \(outcome.end) \(outcome.text)")
                        }
                        continue
                    }
                    do {
                        switch try await audit.verdict(copy) {
                        case .tampered, .checkpointTampered: break
                        case .intact, .unclean: overlooked.append(change.name)
                        }
                    } catch {
                        overlooked.append("\(change.name): \(error)")
                    }
                }
                #expect(overlooked.isEmpty, "\(overlooked.joined(separator: "\n"))")
                #expect(tried > 200, "\(tried) ways were tried")
            }
        }

        /// All audit rows, sorted.
        private static func dump(_ store: String, after change: String = "") async throws -> [String] {
            let columns = [
                ("audit_records", ["writer", "sequence", "time", "tenant", "tenant_uid", "body", "hash"]),
                ("audit_heads", ["writer", "sequence", "hash", "state", "seal"]),
                ("audit_checkpoints", ["number", "content", "signature"]),
                ("gateway_checkpoint_end", ["id", "number", "digest", "removed", "removed_digest", "signature"]),
                ("audit_truncations", ["writer", "sequence", "hash", "time", "signature"]),
            ]
            let queries = columns.map { table, names in
                "SELECT \(names.map { "quote(\($0))" }.joined(separator: " || ',' || ")) FROM \(table)"
            }
            return try await SQL.change(store, change, thenRead: queries.joined(separator: " UNION ALL ")).sorted()
        }

        @Test("Without the master key the public key checks signatures but not seals")
        func publicKey() async throws {
            try await PrivateDirectory.with(prefersMemory: true) { directory in
                let audit = try await RecordedAudit.make(in: directory)
                let store = "\(audit.data)/gateway.sqlite"
                let environment = ["GATEWAY_DATA_DIR": audit.data]
                let printed = try await Program.gateway(["audit", "public-key"], environment: audit.environment)
                #expect(printed.end == .code(0))
                #expect(printed.output == "\(audit.publicKey)\n")
                let file = try directory.write(printed.output, to: "key.pub")
                func verify(_ key: String) async throws -> Program.Outcome {
                    try await Program.auditVerify(environment, "--public-key", key)
                }
                for key in [audit.publicKey, file] {
                    let outcome = try await verify(key).expect(0)
                    #expect(outcome.errors.contains("seals on the chains' ends are not checked"))
                }
                let other = Data(repeating: 3, count: 32).base64EncodedString()
                try await verify(other).expect(1)
                try await verify("nothing").expect(64)
                let none = try await Program.auditVerify(environment).expect(0)
                #expect(none.errors.contains("signatures are not checked"))
                // The signed checkpoints reveal a changed head even if seals aren't checked.
                try await SQL.change(store, "UPDATE audit_heads SET sequence = sequence - 1 WHERE writer = 4")
                #expect(try await verify(audit.publicKey).end == .code(1))
            }
        }

        @Test("audit verify starts over if a gateway starts meanwhile")
        func startMeanwhile() async throws {
            try await PrivateDirectory.with(prefersMemory: true) { directory in
                let audit = try await RecordedAudit.make(in: directory)
                let (pipe, go) = (directory.path("pipe"), directory.path("go"))
                // The gateway starts while the check waits for the sink's pipe. The second pass finds a file there,
                // because the pipe's writer can't tell that the first pass has ended.
                let feed = """
                    mkfifo "$1" && echo ready && exec 3> "$1" && echo opened
                    until [ -e "$2" ]; do sleep 0.05; done
                    rm "$1" && cp "$0" "$1" && cat "$0" >&3
                    """
                let shell = URL(filePath: "/bin/sh")
                let outcome = try await ChildProcess.with(shell, ["-c", feed, audit.sink, pipe, go]) { feeder in
                    _ = try await feeder.output.first { $0.contains("ready") ? $0 : nil }
                    let verified = Task { try await audit.verify(nil, ["--sink", pipe]) }
                    _ = try await feeder.output.first { $0.contains("opened") ? $0 : nil }
                    let environment = RunningGateway.environment(dataDirectory: audit.data)
                    return try await RunningGateway.serving(environment) { gateway in
                        _ = try directory.write("", to: "go")
                        let outcome = try await verified.value
                        try await gateway.stopInOrder()
                        return outcome
                    }
                }
                outcome.expect(0)
            }
        }
    }
}
