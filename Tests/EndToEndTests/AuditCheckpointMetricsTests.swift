import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Metrics of checkpoints")
    struct AuditCheckpointMetricsTests {
        @Test("A gateway that has just started tells when all was signed, and how often that is done")
        func start() async throws {
            try await PrivateDirectory.with { directory in
                let environment = directory.environment(["GATEWAY_AUDIT_CHECKPOINT_INTERVAL_MS": "600000"])
                // The second start finds the checkpoints of the first.
                for _ in 1...2 {
                    let begin = Date().timeIntervalSince1970
                    try await RunningGateway.serving(environment) { gateway in
                        #expect(try await gateway.metric("fcmgw_audit_checkpoint_interval_seconds") == "600")
                        let last = try await gateway.metric("fcmgw_audit_last_checkpoint_timestamp_seconds")
                        let time = last.flatMap { Double($0) } ?? 0
                        // The machine's clock may have been corrected in between, by no more than this.
                        #expect(time > begin - 3_600)
                        try await gateway.stopInOrder()
                    }
                }
            }
        }
    }
}
