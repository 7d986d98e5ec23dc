import GatewayCore
import GatewayStorage
import GatewayTestKit
import ServiceLifecycle
import Testing

@testable import GatewayService

struct AuditCheckpointServiceTests {
    @Test("The first checkpoint does not wait for the first interval to be over", .timeLimit(.minutes(10)))
    func first() async throws {
        try await TemporaryDirectory.with { directory in
            let fixture = try await AuditTrailFixture(directory)
            var chain = AuditChain(writer: 1)
            try await fixture.write(3, to: &chain)
            #expect(try await fixture.store.signatures().checkpoints.count == 1)
            let service = AuditCheckpointService(
                checkpointer: fixture.checkpointer,
                feeder: nil,
                interval: .seconds(86_400)
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await service.run() }
                // The service's end makes a checkpoint too, so it has to be seen before.
                while try await fixture.store.signatures().checkpoints.count < 2 { await Task.yield() }
                group.cancelAll()
            }
            try fixture.database.close()
        }
    }
}
