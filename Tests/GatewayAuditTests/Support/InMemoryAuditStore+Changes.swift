import GatewayAudit
import GatewayTestKit

extension InMemoryAuditStore {
    /// Signs the first checkpoint of the current heads and truncations.
    func sign(_ signer: AuditSigner) async throws {
        let checkpointer = AuditCheckpointer.sample(self, signer)
        // Not prepared: a gateway doesn't start on truncations without a checkpoint.
        guard await checkpointer.checkpoint() else { throw SampleError(what: "checkpoint") }
    }
}

extension InMemoryAuditStore.Contents {
    mutating func delete(_ writer: Int, _ sequence: Int) {
        self.records.removeAll { ($0.writer, $0.sequence) == (writer, sequence) }
    }

    mutating func change(_ writer: Int, _ sequence: Int, _ body: (inout ChainedAuditRecord) -> Void) {
        for index in self.records.indices
        where (self.records[index].writer, self.records[index].sequence) == (writer, sequence) {
            body(&self.records[index])
        }
    }
}
