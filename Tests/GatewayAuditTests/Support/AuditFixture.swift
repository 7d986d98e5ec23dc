import GatewayAudit
import GatewayTestKit
import Logging
import Testing

/// A store with chains of several writers, as earlier processes left them.
struct AuditFixture {
    let store = InMemoryAuditStore()
    let sealer = AuditSealer(auditKey: .sample("audit"))

    /// Creates one chain for each writer, with the given number of records.
    init(_ writers: (records: Int, state: AuditHead.State)...) async throws {
        for (index, writer) in writers.enumerated() {
            var chain = AuditChain(writer: index + 1)
            try await self.append(writer.records, to: &chain, state: writer.state)
        }
    }

    /// Appends records that differ from each other.
    func append(_ count: Int, to chain: inout AuditChain, state: AuditHead.State) async throws {
        let records = (0..<count)
            .map { _ in
                var record = RecordChange.original
                record.requestID = "request \(chain.sequence + 1) of writer \(chain.writer)"
                return chain.append(record)
            }
        try await self.store.append(records, head: self.sealer.head(of: chain, state: state))
    }

    func verify(
        isLive: Bool = false,
        progress: @Sendable (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) async throws -> AuditVerifier.Verdict {
        try await AuditVerifier(store: self.store, sealer: self.sealer).verify(isLive: isLive, progress: progress)
    }
}

extension InMemoryAuditStore {
    /// Verifies the store, with no live writer.
    func verdict() async throws -> AuditVerifier.Verdict {
        try await AuditVerifier(store: self, sealer: AuditSealer(auditKey: .sample("audit"))).verify(isLive: false)
    }

    /// Expects these actions, in this order, and chains that verify.
    func expectIntact(_ actions: [String], sourceLocation: SourceLocation = #_sourceLocation) async throws {
        #expect(self.actions == actions, sourceLocation: sourceLocation)
        let verdict = try await self.verdict()
        #expect(verdict == .intact(records: actions.count), sourceLocation: sourceLocation)
    }
}

extension AuditCheckpointer {
    /// A checkpointer under the sample audit key.
    static func sample(
        _ store: any AuditStore,
        _ signer: AuditSigner,
        clock: any WallClock = ManualClock()
    ) -> AuditCheckpointer {
        AuditCheckpointer(
            store: store,
            signer: signer,
            sealer: AuditSealer(auditKey: .sample("audit")),
            clock: clock,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
    }
}

extension AuditLog {
    /// Runs the log, and the body once its chain is open.
    func whileOpen<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
        try await self.whileRunning {
            _ = await self.whenOpen()
            return try await body()
        }
    }
}

extension AuditVerifier.Verdict {
    /// The first bad place, if one was found.
    var badPlace: AuditChain.Position? {
        switch self {
        case .tampered(let position, _): position
        case .intact, .unclean, .checkpointTampered: nil
        }
    }
}
