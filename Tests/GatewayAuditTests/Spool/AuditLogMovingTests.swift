import GatewayTestKit
import Testing

@testable import GatewayAudit

@Suite("An audit log whose chain another replica closes", .timeLimit(.minutes(10)))
struct AuditLogMovingTests {
    private let store = InMemoryAuditStore()
    private let spool = InMemorySpoolFile()
    private let sealer = AuditSealer(auditKey: .sample("audit"))

    private func log(spool: InMemorySpoolFile? = nil, afterCheckpoint: Int = 0, isShared: Bool = true) -> AuditLog {
        let sharing = AuditSharing(replica: ReplicaID(text: "alive"), registry: self.store)
        return .sample(
            store: self.store,
            spool: spool ?? self.spool,
            afterCheckpoint: afterCheckpoint,
            sharing: isShared ? sharing : nil
        )
    }

    /// The opening records of all chains.
    private var opened: [AuditRecord] { self.store.current.records(of: "audit.opened") }

    /// The writer of the chain that the latest one continues; 0 for none.
    private var continued: Int? { self.opened.last?.continuesWriter }

    // MARK: While it runs

    @Test("The log continues on a new chain, whose first record names the closed chain")
    func closed() async throws {
        let log = self.log()
        try await log.whileOpen {
            try await log.commit(.sample("before"))
            self.store.closeChains()
            try await log.commit(.sample("after"))
            try log.place().fill(.sample("later"))
        }
        try await self.store.expectIntact(
            ["audit.opened", "before", "audit.recovered", "audit.opened", "after", "later", "audit.closed"]
        )
        #expect(self.opened.map(\.continuesWriter) == [0, 1])
        #expect(self.store.current.heads.map(\.state) == [.recovered, .closed])
        #expect(self.store.current.writers[2] == ReplicaID(text: "alive"))
    }

    @Test("A new chain names the latest checkpoint of a shared store, not the one at the start of the process")
    func checkpoints() async throws {
        let store = self.store
        @Sendable func make(_ numbers: ClosedRange<Int>) {
            let made = numbers.map { SignedCheckpoint(number: $0, text: [], signature: []) }
            store.tamper { $0.checkpoints += made }
        }
        make(1...7)
        let log = self.log(afterCheckpoint: 7)
        make(8...9)
        try await log.whileOpen {
            make(10...3_000)
            store.closeChains()
            try await log.commit(.sample("after"))
        }
        #expect(self.opened.map(\.afterCheckpoint) == [9, 3_000])
        #expect(self.opened.map(\.continuesWriter) == [0, 1])
        // A process that doesn't share its store names the checkpoint that it found at its start.
        try await self.log(afterCheckpoint: 7, isShared: false).whileRunning {}
        #expect(self.opened.last?.afterCheckpoint == 7)
    }

    @Test("If its chain is closed before the log ends, the log opens another chain and closes it")
    func closedAtTheEnd() async throws {
        try await self.log().whileOpen { self.store.closeChains() }
        try await self.store.expectIntact(["audit.opened", "audit.recovered", "audit.opened", "audit.closed"])
    }

    @Test("Records spooled while the store was unavailable are on the new chain, once and in order")
    func cutOff() async throws {
        let log = self.log()
        let numbers = 0..<500
        try await log.whileOpen {
            self.store.refuse()
            for number in numbers {
                try log.place().fill(.sample("\(number)"))
                if number == 100 { #expect(await log.settle()) }
            }
            try await self.store.wait { $0.refused >= 3 }
            self.store.closeChains()
            try await self.store.wait { $0.records.count == 3 + numbers.count }
            try await log.commit(.sample("last"))
        }
        let expected = ["audit.opened", "audit.recovered", "audit.opened"] + numbers.map { "\($0)" }
        try await self.store.expectIntact(expected + ["last", "audit.closed"])
        #expect(self.spool.current.bytes.isEmpty)
        #expect(self.continued == 1)
    }

    @Test("Records whose answers were lost before the chain was closed are not stored twice")
    func lostAnswers() async throws {
        let log = self.log()
        try await log.whileOpen {
            self.store.loseAnswers()
            for number in 0..<10 { try log.place().fill(.sample("\(number)")) }
            try await self.store.wait { $0.records.count == 11 }
            self.store.closeChains()
            try await log.commit(.sample("later"))
        }
        let expected = ["audit.opened"] + (0..<10).map { "\($0)" } + ["audit.recovered", "audit.opened", "later"]
        try await self.store.expectIntact(expected + ["audit.closed"])
        #expect(self.continued == 1)
    }

    @Test("A commit whose answer was lost is stored once, before later records", arguments: [false, true])
    func lostAnswerOfCommit(isShared: Bool) async throws {
        let log = self.log(isShared: isShared)
        try await log.whileOpen {
            self.store.loseAnswers()
            let error = await #expect(throws: GatewayError.self) { try await log.commit(.sample("commit")) }
            #expect(error?.code == .auditUnavailable)
            try log.place().fill(.sample("next"))
            self.store.loseAnswers(false)
            try await self.store.wait { !$0.records(of: "next").isEmpty }
            try await log.commit(.sample("last"))
        }
        try await self.store.expectIntact(["audit.opened", "commit", "next", "last", "audit.closed"])
    }

    @Test("Each record is stored once and in order despite repeated outages, lost answers and closed chains")
    func again() async throws {
        let log = self.log()
        let numbers = 0..<400
        try await log.whileOpen {
            for number in numbers {
                switch number % 40 {
                case 7: self.store.refuse()
                case 17: self.store.closeChains()
                case 23: self.store.loseAnswers()
                case 38: self.store.closeChains()
                default: break
                }
                try log.place().fill(.sample("\(number)"))
                if number.isMultiple(of: 5) { await log.settle() }
            }
            self.store.closeChains()
            try await log.commit(.sample("last"))
        }
        // The leader closes chains whose beginning got no answer.
        self.store.closeChains()
        let actions = self.store.actions
        #expect(actions.filter { !$0.hasPrefix("audit.") } == numbers.map { "\($0)" } + ["last"])
        #expect(try await self.store.verdict() == .intact(records: actions.count))
    }

    @Test("A damaged spool of a closed chain loses only the damaged batch, and no record is stored twice")
    func damaged() async throws {
        let log = self.log()
        try await log.whileOpen {
            self.store.refuse()
            for number in 0..<3 {
                try log.place().fill(.sample("\(number)"))
                #expect(await log.settle())
            }
            self.spool.tamper { $0[$0.count - 40] ^= 1 }
            let refused = self.store.current.refused
            // Waits for more than the one attempt that had read the spool before the change.
            try await self.store.wait { $0.refused > refused + 3 }
            self.store.closeChains()
            try await self.store.wait { !$0.records(of: "audit.spool_damaged").isEmpty }
            try await log.commit(.sample("later"))
        }
        try await self.store.expectIntact([
            "audit.opened", "audit.recovered", "audit.opened", "0", "1", "audit.spool_damaged", "later", "audit.closed",
        ])
        #expect(self.spool.current.aside.count == 1)
    }

    // MARK: At a start

    private static let actions = (100..<130).map { "\($0)" }

    /// Stores a chain with the first `stored` of 30 records, and returns a spool with all of them.
    private func crashed(stored: Int, isClosed: Bool = true) async throws -> InMemorySpoolFile {
        var chain = AuditChain(writer: 1)
        let opened = chain.append(.sample("audit.opened"))
        try await self.store.append([opened], head: self.sealer.head(of: chain, state: .open))
        var spooled = chain
        let records = Self.actions.prefix(stored).map { chain.append(AuditRecord.sample($0)) }
        try await self.store.append(records, head: self.sealer.head(of: chain, state: .open))
        if isClosed { self.store.closeChains() }
        let file = InMemorySpoolFile()
        let spool = AuditSpool(file: file, auditKey: .sample("audit"), maxBytes: 1 << 24)
        var end = AuditSpool.Cursor()
        for start in stride(from: 0, to: 30, by: 10) {
            let entries = Self.actions[start..<(start + 10)].map { AuditChain.Entry(AuditRecord.sample($0)) }
            spooled = try await spool.append(entries, after: spooled, to: &end)
        }
        return file
    }

    @Test(
        "The next start writes the spooled records that the closed chain lacks to its own chain, once",
        arguments: [0, 1, 9, 10, 11, 29, 30],
        [false, true]
    )
    func replay(stored: Int, isClosed: Bool) async throws {
        let file = try await self.crashed(stored: stored, isClosed: isClosed)
        let bytes = file.current.bytes
        try await self.log(spool: file).whileRunning {}
        let expected =
            ["audit.opened"] + Self.actions.prefix(stored) + ["audit.recovered", "audit.opened"]
            + Self.actions.dropFirst(stored) + ["audit.closed"]
        try await self.store.expectIntact(expected)
        #expect(file.current.bytes.isEmpty)
        #expect(self.continued == (stored == 30 ? 0 : 1))
        // As after a kill between the store's commit and the emptying of the spool.
        file.tamper { $0 = bytes }
        try await self.log(spool: file).whileRunning {}
        #expect(self.store.actions.filter { !$0.hasPrefix("audit.") } == Self.actions)
        #expect(file.current.bytes.isEmpty && file.current.aside.isEmpty)
    }

    @Test("A start continues moving a spool where a killed start stopped", arguments: [0, 1, 12, 30], [false, true])
    func killedWhileMoving(moved: Int, isClosed: Bool) async throws {
        let file = try await self.crashed(stored: 0)
        var chain = AuditChain(writer: 2)
        var opened = AuditRecord.sample("audit.opened")
        (opened.afterCheckpoint, opened.continuesWriter) = (7, 1)
        let texts = Self.actions.prefix(moved)
        let records = [chain.append(opened)] + texts.map { chain.append(AuditRecord.sample($0)) }
        try await self.store.append(records, head: self.sealer.head(of: chain, state: .open))
        if isClosed { self.store.closeChains() }
        try await self.log(spool: file).whileRunning {}
        #expect(self.store.actions.filter { !$0.hasPrefix("audit.") } == Self.actions)
        #expect(self.store.current.heads.map(\.state) == [.recovered, .recovered, .closed])
        #expect(self.continued == (moved == 30 ? 0 : 2))
        #expect(file.current.bytes.isEmpty)
    }

    @Test("A start leaves other replicas' chains open, and sets aside the spool of a chain that was closed")
    func others() async throws {
        var chain = AuditChain(writer: 1)
        let other = chain.append(.sample("other's"))
        try await self.store.append([other], head: self.sealer.head(of: chain, state: .open))
        try await self.log().whileRunning {}
        #expect(self.store.current.heads.map(\.state) == [.open, .closed])
        let file = InMemorySpoolFile()
        var end = AuditSpool.Cursor()
        let ended = try #require(self.store.current.heads.last?.chain)
        _ = try await AuditSpool(file: file, auditKey: .sample("audit"), maxBytes: 1 << 24)
            .append([AuditChain.Entry(AuditRecord.sample("foreign"))], after: ended, to: &end)
        try await self.log(spool: file).whileRunning {}
        #expect(self.store.current.records(of: "foreign").isEmpty)
        #expect(self.store.current.records(of: "audit.spool_damaged").count == 1)
        #expect(file.current.aside.count == 1)
    }
}
