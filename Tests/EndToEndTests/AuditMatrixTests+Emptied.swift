import Foundation
import GatewayCore
import GatewayStorage
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd.AuditMatrixTests {
    /// The audit's tables, with the columns that order their rows by age.
    private static let ages = [
        ("audit_records", ["writer", "sequence"]), ("audit_heads", ["writer"]),
        ("audit_checkpoints", ["number"]),
        ("audit_truncations", ["writer"]), ("gateway_checkpoint_end", ["id"]),
    ]

    /// Statements that empty a table, or delete its two oldest or newest rows.
    private static var losses: [String] {
        self.ages.flatMap { table, age in
            let key = age.joined(separator: ", ")
            let some = ["ASC", "DESC"]
                .map { direction in
                    let order = age.map { "\($0) \(direction)" }.joined(separator: ", ")
                    return " WHERE (\(key)) IN (SELECT \(key) FROM \(table) ORDER BY \(order) LIMIT 2)"
                }
            return ([""] + some).map { "DELETE FROM \(table)\($0);" }
        }
    }

    /// Statements that delete from several tables.
    private static var greaterLosses: [String] {
        let emptied = self.ages.map(\.0).filter { $0.hasPrefix("audit_") }.map { "DELETE FROM \($0);" }.joined()
        let word = "DELETE FROM gateway_checkpoint_end;"
        let newest = """
            DELETE FROM audit_checkpoints WHERE number > 13; DELETE FROM audit_records WHERE writer = 4;
            DELETE FROM audit_heads WHERE writer = 4;
            """
        return [
            emptied, emptied + word, "\(emptied)\(word) DELETE FROM gateway_secrets WHERE name <> 'key_pepper';",
            newest, newest + word,
        ]
    }

    @Test("Deleted rows of any audit table are found with either key, without a key, and by the start's check")
    func losses() async throws {
        try await PrivateDirectory.with(prefersMemory: true) { directory in
            let audit = try await RecordedAudit.make(in: directory)
            for way in RecordedAudit.Way.allCases {
                guard case .intact = try await audit.verdict(audit.data, by: way) else {
                    Issue.record("\(way) finds something where nothing is gone")
                    continue
                }
            }
            #expect(try await audit.verdictOnEnds(audit.data) == nil)
            for statements in Self.losses {
                let copy = try directory.copy("data", to: "copy")
                defer { try? FileManager.default.removeItem(atPath: copy) }
                try await SQL.change("\(copy)/gateway.sqlite", statements)
                for way in RecordedAudit.Way.allCases {
                    switch try await audit.verdict(copy, by: way) {
                    case .tampered, .checkpointTampered: break
                    case .intact, .unclean: Issue.record("\(way) overlooks \(statements)")
                    }
                }
                #expect(try await audit.verdictOnEnds(copy) != nil, "\(statements)")
            }
        }
    }

    @Test("A gateway that starts on an emptied audit logs an error, serves, and keeps the loss detectable")
    func starts() async throws {
        try await PrivateDirectory.with(prefersMemory: true) { directory in
            let audit = try await RecordedAudit.make(in: directory)
            let emptied = Self.losses.filter { !$0.contains("WHERE") }
            for (number, statements) in (emptied + Self.greaterLosses).enumerated() {
                let copy = try directory.copy("data", to: "copy-\(number)")
                try await SQL.change("\(copy)/gateway.sqlite", statements)
                try await audit.expectChanged(copy, statements)
                try await RunningGateway.serving(RunningGateway.environment(dataDirectory: copy)) { gateway in
                    // Without a finding this waits until the time limit.
                    _ = try await gateway.process.errors.first { text in
                        text.split(separator: "\n")
                            .first { $0.contains("audit verify tells more") && $0.contains(#""level":"error""#) }
                    }
                    #expect(try await gateway.metrics().contains("\nfcmgw_audit_changed 1\n"), "\(statements)")
                    #expect(try await gateway.admin("PUT", "tenants/shop", #"{"display_name": "Shop"}"#).status == 201)
                    try await audit.expectChanged(copy, "\(statements), while it serves")
                    try await gateway.stopInOrder()
                }
                try await audit.expectChanged(copy, "\(statements), after a start")
            }
        }
    }

    @Test("Deleting records that no checkpoint covers is found, because a tenant lacks its creation record")
    func unsigned() async throws {
        try await PrivateDirectory.with(prefersMemory: true) { directory in
            let environment = directory.environment(["GATEWAY_AUDIT_CHECKPOINT_INTERVAL_MS": "600000"])
            let store = directory.path("data/gateway.sqlite")
            func verify() async throws -> Program.Outcome { try await Program.auditVerify(environment) }
            try await RunningGateway.serving(environment) { gateway in
                #expect(try await gateway.metrics().contains("\nfcmgw_audit_changed 0\n"))
                #expect(try await gateway.admin("PUT", "tenants/shop", #"{"display_name": "Shop"}"#).status == 201)
                try await gateway.kill()
            }
            try await verify().expect(2)
            let emptied = ["records", "heads"].map { "DELETE FROM audit_\($0);" }.joined()
            try await SQL.change(store, emptied)
            for _ in 1...2 {
                try await verify().expect(1)
                try await RunningGateway.serving(environment) { gateway in
                    #expect(try await gateway.metrics().contains("\nfcmgw_audit_changed 1\n"))
                    // This records a change of the tenant.
                    #expect(try await gateway.admin("PUT", "tenants/shop", #"{"display_name": "Shop"}"#).status == 200)
                    try await gateway.stopInOrder()
                }
            }
            try await verify().expect(1)
        }
    }
}
