import GatewayTestKit

@testable import GatewayAudit

/// Simulates the audit's part of gateway starts on one store.
struct AuditStarts {
    let store = InMemoryAuditStore()
    let signer: AuditSigner
    let sealer = AuditSealer(auditKey: .sample("audit"))
    private let clock = ManualClock()

    init() throws {
        self.signer = try AuditSigner(signingKey: .sample("signing"))
    }

    /// Starts, signs checkpoints after a record each, and stops; `removesOld` removes all but the latest.
    func run(checkpoints: Int, removesOld: Bool = false) async throws {
        let checkpointer = AuditCheckpointer.sample(self.store, self.signer, clock: self.clock)
        var opened = AuditRecord.sample()
        opened.afterCheckpoint = try await checkpointer.prepare()
        var chain = AuditChain(writer: self.store.current.heads.count + 1)
        try await self.append(opened, to: &chain, .open)
        for number in 0...checkpoints {
            self.clock.advance(by: .seconds(60))
            if removesOld { checkpointer.remove(before: self.clock.now()) }
            try await self.append(.sample(), to: &chain, number < checkpoints ? .open : .closed)
            guard await checkpointer.checkpoint() else { throw SampleError(what: "checkpoint") }
        }
    }

    private func append(_ record: AuditRecord, to chain: inout AuditChain, _ state: AuditHead.State) async throws {
        let records = [chain.append(record)]
        try await self.store.append(records, head: self.sealer.head(of: chain, state: state))
    }

    /// True if verification finds nothing wrong.
    func isIntact() async throws -> Bool {
        let verifier = AuditVerifier(store: self.store, sealer: self.sealer, publicKey: self.signer.publicKey)
        guard case .intact = try await verifier.verify(isLive: false) else { return false }
        return true
    }

    /// Removes the last writer's records and head.
    func dropLastWriter() {
        self.store.tamper { contents in
            let writer = contents.heads.removeLast().writer
            contents.records.removeAll { $0.writer == writer }
        }
    }

    /// Removes a chain's first record by age, as retention does.
    func removeFirstRecord(of writer: Int) throws {
        guard let first = self.store.current.records.first(where: { $0.writer == writer }) else { return }
        let chain = AuditChain(writer: writer, sequence: first.sequence, hash: first.hash)
        let truncation = try self.signer.truncation(of: chain, at: .sample)
        self.store.tamper { contents in
            contents.records.removeAll { $0.writer == writer && $0.sequence <= truncation.sequence }
            contents.signatures.truncations.append(truncation)
        }
    }
}
