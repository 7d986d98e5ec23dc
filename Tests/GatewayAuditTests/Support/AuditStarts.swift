import GatewayTestKit

@testable import GatewayAudit

/// A gateway's starts on one store, as far as the audit is concerned.
struct AuditStarts {
    let store = InMemoryAuditStore()
    let signer: AuditSigner
    let sealer = AuditSealer(auditKey: .sample("audit"))
    private let clock = ManualClock()

    init() throws {
        self.signer = try AuditSigner(signingKey: .sample("signing"))
    }

    /// Starts, makes so many checkpoints, each with a record more, and stops; has all but the latest removed on the way where
    /// they are of no age to be kept.
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

    /// Whether verification finds nothing wrong.
    func isIntact() async throws -> Bool {
        let verifier = AuditVerifier(store: self.store, sealer: self.sealer, publicKey: self.signer.publicKey)
        guard case .intact = try await verifier.verify(isLive: false) else { return false }
        return true
    }

    /// Takes the last writer away, records and end.
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
