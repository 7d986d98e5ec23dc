import GatewayAudit
import GatewayTestKit

extension InMemoryAuditStore {
    /// Makes the first checkpoint, of the ends and truncations that there are.
    func sign(_ signer: AuditSigner) async throws {
        let checkpointer = AuditCheckpointer.sample(self, signer)
        // Not prepared, for no gateway starts on truncations without a checkpoint.
        guard await checkpointer.checkpoint() else { throw SampleError(what: "checkpoint") }
    }
}

extension InMemoryAuditStore.Contents {
    mutating func delete(_ writer: Int, _ sequence: Int) {
        self.records.removeAll { ($0.writer, $0.sequence) == (writer, sequence) }
    }

    /// Changes one stored record.
    mutating func change(_ writer: Int, _ sequence: Int, _ body: (inout ChainedAuditRecord) -> Void) {
        for index in self.records.indices
        where (self.records[index].writer, self.records[index].sequence) == (writer, sequence) {
            body(&self.records[index])
        }
    }
}
