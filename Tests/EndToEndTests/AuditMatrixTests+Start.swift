import Foundation
import GatewayCore
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd.AuditMatrixTests {
    /// Drops the last writer, which only checkpoints tell of then.
    private static let dropLastWriter = """
        DELETE FROM audit_records WHERE writer = 4; DELETE FROM audit_heads WHERE writer = 4;
        """

    /// What is done to the checkpoints so that they tell no more.
    private static func tricks() -> [String] {
        let zeros = String(repeating: "00", count: 32)
        let forged = """
            fcm-gateway audit checkpoint 1
            number 359
            time 1
            previous \(zeros)
            settled 0 \(zeros)
            removed 0

            """
        let text = Hex.text(Array(forged.utf8))
        return [
            "INSERT INTO audit_checkpoints VALUES (359, x'\(text)', zeroblob(64))",
            "DELETE FROM audit_checkpoints; DELETE FROM gateway_checkpoint_end",
            """
            DELETE FROM audit_checkpoints; DELETE FROM gateway_checkpoint_end;
            DELETE FROM audit_truncations WHERE writer = 4
            """,
            """
            DELETE FROM audit_checkpoints WHERE number > 14; DELETE FROM gateway_checkpoint_end
            """,
            "UPDATE audit_checkpoints SET number = 9223372036854775807 WHERE number = 14",
        ]
    }

    @Test("What was changed is found also after a gateway has started on it and stopped: exit 1")
    func start() async throws {
        try await PrivateDirectory.with(prefersMemory: true) { directory in
            let audit = try await RecordedAudit.make(in: directory)
            for (number, statements) in ([nil] + Self.tricks().map(Optional.some)).enumerated() {
                let copy = try directory.copy("data", to: "copy-\(number)")
                if let statements {
                    try await SQL.change("\(copy)/gateway.sqlite", Self.dropLastWriter + statements)
                    #expect(try await audit.verify(copy).end == .code(1), "\(statements)")
                }
                try await RunningGateway.serving(RunningGateway.environment(dataDirectory: copy)) { gateway in
                    // Also while it serves.
                    #expect(try await audit.verify(copy).end == .code(statements == nil ? 0 : 1))
                    try await gateway.stopInOrder()
                }
                let outcome = try await audit.verify(copy)
                #expect(
                    outcome.end == .code(statements == nil ? 0 : 1),
                    "\(statements ?? "nothing"): \(outcome.output)\(outcome.errors)"
                )
                #expect(outcome.output.contains("First bad record: ") == (statements != nil), "\(outcome.output)")
            }
        }
    }
}
