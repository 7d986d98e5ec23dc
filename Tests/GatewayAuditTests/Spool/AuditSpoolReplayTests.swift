import GatewayTestKit
import InMemoryLogging
import Logging
import Testing

@testable import GatewayAudit

@Suite("Spool replay after a crash", .timeLimit(.minutes(10)))
struct AuditSpoolReplayTests {
    private let store = InMemoryAuditStore()
    private let sealer = AuditSealer(auditKey: .sample("audit"))

    private func spool(_ file: InMemorySpoolFile, auditKey: Secret = .sample("audit")) -> AuditSpool {
        AuditSpool(file: file, auditKey: auditKey, maxBytes: 1 << 24)
    }

    /// Stores a chain's opening record and spools the batches that follow; returns the spool and its records.
    private func crashed(_ batches: [[String]]) async throws -> (file: InMemorySpoolFile, records: [ChainedAuditRecord])
    {
        var chain = AuditChain(writer: 1)
        let opened = chain.append(.sample("opened"))
        try await self.store.append([opened], head: self.sealer.head(of: chain, state: .open))
        let file = InMemorySpoolFile()
        var end = AuditSpool.Cursor()
        var records: [ChainedAuditRecord] = []
        for batch in batches {
            let entries = batch.map { AuditChain.Entry(AuditRecord.sample($0)) }
            records += AuditSpool.Batch(base: chain, entries: entries).records
            chain = try await self.spool(file).append(entries, after: chain, to: &end)
        }
        return (file, records)
    }

    /// Stores some of the records, as the process may have done before the crash.
    private func give(_ records: some Collection<ChainedAuditRecord>) async throws {
        guard let last = Array(records).last else { return }
        let chain = AuditChain(writer: 1, sequence: last.sequence, hash: last.hash)
        try await self.store.append(Array(records), head: self.sealer.head(of: chain, state: .open))
    }

    private func start(_ file: InMemorySpoolFile, logger: Logger? = nil) async throws {
        let silent = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        try await AuditLog.sample(store: self.store, spool: file, logger: logger ?? silent).whileRunning {}
    }

    private static let actions = (100..<130).map { "\($0)" }
    private static let batches = stride(from: 0, to: 30, by: 10).map { Array(actions[$0..<($0 + 10)]) }

    @Test(
        "Each spooled record is stored once, however many the store had when the process was killed",
        arguments: [0, 1, 9, 10, 11, 20, 29, 30]
    )
    func replay(stored: Int) async throws {
        let (file, records) = try await self.crashed(Self.batches)
        let bytes = file.current.bytes
        try await self.give(records.prefix(stored))
        try await self.start(file)
        let expected = ["opened"] + Self.actions + ["audit.recovered", "audit.opened", "audit.closed"]
        try await self.store.expectIntact(expected)
        #expect(file.current.bytes.isEmpty)
        // As after a kill between the store's commit and the emptying of the spool.
        file.tamper { $0 = bytes }
        try await self.start(file)
        try await self.store.expectIntact(expected + ["audit.opened", "audit.closed"])
        #expect(file.current.bytes.isEmpty)
    }

    @Test("A start that fails leaves the spool unchanged, and the next start stores all records")
    func failedStart() async throws {
        let (file, _) = try await self.crashed(Self.batches)
        let bytes = file.current.bytes
        self.store.refuse()
        await #expect(throws: GatewayError.self) { try await self.start(file) }
        #expect(file.current.bytes == bytes)
        self.store.refuse(false)
        try await self.start(file)
        #expect(self.store.actions.filter { Self.actions.contains($0) } == Self.actions)
    }

    @Test("A spool truncated at any byte loses only the torn batch")
    func torn() async throws {
        let (file, records) = try await self.crashed(Self.batches)
        let bytes = file.current.bytes
        var ends: [Int] = []
        var cursor = AuditSpool.Cursor()
        while case .batch = try await self.spool(file).next(from: &cursor) { ends.append(cursor.offset) }
        #expect(ends.count == 3 && ends.last == bytes.count)
        for size in 0..<bytes.count {
            let finding = try await self.spool(InMemorySpoolFile(Array(bytes.prefix(size)))).inspect()
            let whole = ends.count { $0 <= size }
            #expect(finding.records == whole * 10, "\(size)")
            #expect(!finding.isDamaged, "\(size)")
            #expect(finding.isTorn == (size > 0 && !ends.contains(size) && size != AuditSpool.headByteCount))
        }
        #expect(records.count == 30)
        file.tamper { $0 = Array(bytes.prefix(ends[1] + 17)) }
        try await self.start(file)
        let expected = ["opened"] + Self.actions.prefix(20) + ["audit.recovered", "audit.opened", "audit.closed"]
        #expect(self.store.actions == expected)
        #expect(file.current.aside.isEmpty)
    }

    @Test("Zeros at the end, as a power failure leaves them, are not treated as tampering")
    func zeros() async throws {
        let (file, _) = try await self.crashed(Self.batches)
        file.tamper { $0 += Array(repeating: 0, count: 5_000) }
        try await self.start(file)
        #expect(self.store.current.records(of: "audit.spool_damaged").isEmpty)
        #expect(self.store.actions.filter { Self.actions.contains($0) } == Self.actions)
    }

    @Test("A changed byte is found; the batches before it are stored, and the spool is set aside")
    func tampered() async throws {
        let (file, _) = try await self.crashed(Self.batches)
        let bytes = file.current.bytes
        for index in stride(from: 0, to: bytes.count, by: 7) {
            var changed = bytes
            changed[index] ^= 0x40
            let finding = try await self.spool(InMemorySpoolFile(changed)).inspect()
            // A length beyond the end of the file looks like a torn batch.
            #expect(finding.isDamaged || finding.isTorn, "\(index)")
            #expect(finding.records < 30, "\(index)")
        }
        let handler = InMemoryLogHandler()
        file.tamper { $0[$0.count / 2] ^= 1 }
        let changed = file.current.bytes
        try await self.start(file, logger: Logger(label: "test") { _ in handler })
        let expected =
            ["opened"] + Self.actions.prefix(10)
            + ["audit.recovered", "audit.opened", "audit.spool_damaged", "audit.closed"]
        try await self.store.expectIntact(expected)
        #expect(Array(file.current.aside.values) == [changed])
        #expect(handler.entries.contains { $0.level == .error })
    }

    @Test("Batches that are swapped, omitted, repeated or from another spool are found")
    func rearranged() async throws {
        let (file, _) = try await self.crashed(Self.batches)
        let (other, _) = try await AuditSpoolReplayTests().crashed(Self.batches)
        let (bytes, foreign) = (file.current.bytes, other.current.bytes)
        let head = AuditSpool.headByteCount
        let size = (bytes.count - head) / 3
        func batch(_ number: Int, of bytes: [UInt8]) -> [UInt8] { Array(bytes[(head + number * size)...].prefix(size)) }
        let start = Array(bytes.prefix(head))
        let cases: [(name: String, bytes: [UInt8], records: Int)] = [
            ("swapped", start + batch(1, of: bytes) + batch(0, of: bytes), 0),
            ("left out", start + batch(0, of: bytes) + batch(2, of: bytes), 10),
            ("repeated", bytes + batch(2, of: bytes), 30),
            ("another spool's", start + batch(0, of: foreign), 0),
            ("another spool's head", Array(foreign.prefix(head)) + bytes.dropFirst(head), 0),
        ]
        for item in cases {
            let finding = try await self.spool(InMemorySpoolFile(item.bytes)).inspect()
            #expect(finding.isDamaged && finding.records == item.records, "\(item.name): \(finding)")
        }
        let finding = try await self.spool(file, auditKey: .sample("another")).inspect()
        #expect(finding.isDamaged)
    }

    @Test("Spooled records follow a refused commit that took their position in the chain, each once")
    func conflict() async throws {
        let (file, records) = try await self.crashed(Self.batches)
        let bytes = file.current.bytes
        // The store has the first five records and, after them, a commit that was refused.
        var chain = AuditChain(writer: 1, sequence: records[4].sequence, hash: records[4].hash)
        let refused = chain.append(.sample("refused"))
        try await self.give(records.prefix(5) + [refused])
        try await self.start(file)
        let expected =
            ["opened"] + Self.actions.prefix(5) + ["refused"] + Self.actions.dropFirst(5)
            + ["audit.recovered", "audit.opened", "audit.closed"]
        #expect(self.store.actions == expected)
        file.tamper { $0 = bytes }
        try await self.start(file)
        try await self.store.expectIntact(expected + ["audit.opened", "audit.closed"])
    }

    @Test("A spool is set aside if its chain was closed without some of its records", arguments: [0, 7, 30])
    func chainEndedWithout(stored: Int) async throws {
        let (file, records) = try await self.crashed(Self.batches)
        let bytes = file.current.bytes
        try await self.give(records.prefix(stored))
        // One start with another spool directory, then one with the original.
        try await self.start(InMemorySpoolFile())
        #expect(self.store.current.heads.first?.state == .recovered)
        try await self.start(file)
        let damage = self.store.current.records(of: "audit.spool_damaged")
        #expect(damage.map(\.object) == (stored == 30 ? [] : ["the chain had ended without \(30 - stored) records"]))
        #expect(Array(file.current.aside.values) == (stored == 30 ? [] : [bytes]))
        #expect(file.current.bytes.isEmpty)
    }

    @Test("A spool accepts no batch until the remains of a failed write are removed")
    func remains() async throws {
        let (file, _) = try await self.crashed([["first"]])
        let spool = self.spool(file)
        var end = AuditSpool.Cursor()
        guard case .batch(let batch) = try await spool.next(from: &end) else {
            throw SampleError(what: "no batch")
        }
        let last = try #require(batch.records.last)
        let chain = AuditChain(writer: 1, sequence: last.sequence, hash: last.hash)
        let many = (0..<50).map { AuditChain.Entry(AuditRecord.sample("long \($0)")) }
        file.refuse(leaving: 5_000)
        file.refuseCuts()
        await #expect(throws: GatewayError.self) { try await spool.append(many, after: chain, to: &end) }
        file.refuse(false)
        let one = [AuditChain.Entry(AuditRecord.sample("second"))]
        await #expect(throws: GatewayError.self) { try await spool.append(one, after: chain, to: &end) }
        file.refuseCuts(false)
        _ = try await spool.append(one, after: chain, to: &end)
        let finding = try await spool.inspect()
        #expect(finding.records == 2 && !finding.isDamaged && !finding.isTorn)
    }

    @Test("A spool whose chain is missing from the store is set aside")
    func unknownWriter() async throws {
        let (file, _) = try await self.crashed(Self.batches)
        let bytes = file.current.bytes
        self.store.tamper { ($0.records, $0.heads) = ([], []) }
        try await self.start(file)
        #expect(self.store.actions == ["audit.opened", "audit.spool_damaged", "audit.closed"])
        #expect(Array(file.current.aside.values) == [bytes])
    }
}
