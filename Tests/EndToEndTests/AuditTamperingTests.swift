import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Tampering with the audit", .enabled(if: SQL.isAvailable, "sqlite3 or python3 is needed"))
    struct AuditTamperingTests {
        @Test("Whatever is changed in a stored chain is found, with its place; what is not changed is intact")
        func tampering() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                for _ in 1...2 {
                    try await DevGateway.with(data) { dev in
                        for number in 1...12 {
                            #expect(try await dev.send(#"{"token": "device-\#(number)"}"#).status == 200)
                        }
                        try await dev.gateway.stopInOrder()
                    }
                }
                let store = "\(data)/gateway.sqlite"
                let query = "SELECT max(sequence) FROM audit_records GROUP BY writer ORDER BY writer"
                let lengths = try await SQL.read(store, query).compactMap { Int($0) }
                #expect(lengths.count == 2)
                let last = try #require(lengths.first)
                #expect(last > 12)
                let untouched = try await Program.auditVerify(data).expect(0)
                #expect(untouched.output.contains("intact: \(lengths.reduce(0, +)) records"))

                for (number, tampering) in Tampering.all(last: last).enumerated() {
                    let copy = try directory.copy("data", to: "copy-\(number)")
                    try await SQL.change("\(copy)/gateway.sqlite", tampering.statements)
                    let outcome = try await Program.auditVerify(copy).expect(1, "\(tampering.name)")
                    #expect(
                        outcome.output.contains("sequence \(tampering.sequence) of writer \(tampering.writer):"),
                        "\(tampering.name): \(outcome.output)\(outcome.errors)"
                    )
                }
                #expect(try await Program.auditVerify(data).end == .code(0))
            }
        }

        @Test("Tampering is found while the gateway serves, too")
        func live() async throws {
            try await DevGateway.with { dev in
                #expect(try await dev.send(#"{"token": "device"}"#).status == 200)
                #expect(try await Program.auditVerify(dev.data).end == .code(0))
                let change = "UPDATE audit_records SET time = time + 1 WHERE writer = 1 AND sequence = 2"
                try await SQL.change("\(dev.data)/gateway.sqlite", change)
                let outcome = try await Program.auditVerify(dev.data).expect(1)
                #expect(outcome.output.contains("sequence 2 of writer 1:"))
            }
        }
    }
}
