import GatewayTestKit
import InMemoryLogging
import Logging
import MetricsTestKit
import Testing

@testable import GatewayAudit

@Suite("AuditLog with a spool", .timeLimit(.minutes(10)))
struct AuditLogSpoolTests {
    private let store = InMemoryAuditStore()
    private let spool = InMemorySpoolFile()

    /// A log that spools a batch if the store takes longer than `spoolAfter`.
    private func log(
        _ configuration: AuditLog.Configuration = .sample(),
        spoolAfter: Duration = .seconds(3_600),
        spoolBytes: Int = 1 << 24,
        metrics: GatewayMetrics = GatewayMetrics(),
        logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    ) -> AuditLog {
        var configuration = configuration
        configuration.spoolAfter = spoolAfter
        return AuditLog.sample(
            store: self.store,
            spool: self.spool,
            spoolBytes: spoolBytes,
            configuration: configuration,
            metrics: metrics,
            logger: logger
        )
    }

    private func spooled() async throws -> [ChainedAuditRecord] {
        let spool = AuditSpool(file: self.spool, auditKey: .sample("audit"), maxBytes: 0)
        var cursor = AuditSpool.Cursor()
        var records: [ChainedAuditRecord] = []
        while case .batch(let batch) = try await spool.next(from: &cursor) { records += batch.records }
        return records
    }

    @Test("Records are accepted while the store refuses; after it recovers the chain has each once, in order")
    func spooling() async throws {
        let log = self.log()
        let numbers = 0..<500
        try await log.whileOpen {
            self.store.refuse()
            for number in numbers {
                try log.place().fill(.sample("\(number)"))
                if number == 0 { try await self.spool.wait { $0.writes >= 1 } }
            }
            try await self.store.wait { $0.refused >= 3 }
            #expect(log.hasPlace)
            #expect(self.store.actions == ["audit.opened"])
            self.store.refuse(false)
            try await self.store.wait { $0.records.count == 1 + numbers.count }
            try log.place().fill(.sample("later"))
        }
        let expected = ["audit.opened"] + numbers.map { "\($0)" } + ["later", "audit.closed"]
        try await self.store.expectIntact(expected)
        #expect(self.spool.current.bytes.isEmpty)
    }

    @Test("Records that arrive while the store catches up follow the spooled ones")
    func ordered() async throws {
        // The store may already be writing a batch when it begins to hang.
        let log = self.log(spoolAfter: .milliseconds(1))
        try await log.whileOpen {
            self.store.refuse()
            for number in 0..<100 { try log.place().fill(.sample("\(number)")) }
            try await self.spool.wait { $0.writes >= 1 }
            self.store.hang()
            self.store.refuse(false)
            try await self.store.wait { $0.hanging == 1 }
            // The store hangs, and these records are spooled.
            let writes = self.spool.current.writes
            for number in 100..<200 { try log.place().fill(.sample("\(number)")) }
            try await self.spool.wait { $0.writes > writes }
            self.store.hang(false)
            try await self.store.wait { $0.records.count == 201 }
            for number in 200..<300 { try log.place().fill(.sample("\(number)")) }
        }
        try await self.store.expectIntact(["audit.opened"] + (0..<300).map { "\($0)" } + ["audit.closed"])
    }

    @Test("A batch that hangs in the store is spooled, and stored once even if the store accepts it later")
    func late() async throws {
        let log = self.log(spoolAfter: .milliseconds(1))
        try await log.whileOpen {
            self.store.hang()
            try log.place().fill(.sample("first"))
            try await self.spool.wait { $0.writes == 1 }
            try log.place().fill(.sample("second"))
            try await self.spool.wait { $0.writes == 2 }
            #expect(try await self.spooled().map(\.record.action) == ["first", "second"])
            self.store.hang(false)
            try await self.store.wait { $0.records.count == 3 }
        }
        try await self.store.expectIntact(["audit.opened", "first", "second", "audit.closed"])
    }

    @Test("A commit that hangs in the store does not keep later records from the spool after its timeout")
    func hangingCommit() async throws {
        let log = self.log(.sample(commitTimeout: .milliseconds(20)), spoolAfter: .milliseconds(1))
        try await log.whileOpen {
            self.store.hang()
            let error = await #expect(throws: GatewayError.self) { try await log.commit(.sample("commit")) }
            #expect(error?.code == .auditUnavailable)
            try log.place().fill(.sample("later"))
            try await self.spool.wait { $0.writes >= 1 }
            self.store.hang(false)
            try await self.store.wait { !$0.records(of: "later").isEmpty }
        }
        // The store may or may not have begun the commit before its timeout.
        let expected = ["audit.opened", "commit", "later", "audit.closed"]
        let actions = self.store.actions
        #expect(actions == expected || actions == expected.filter { $0 != "commit" })
        #expect(try await self.store.verdict() == .intact(records: actions.count))
    }

    @Test("A log spools if its queue fills up while the store is slow")
    func pressed() async throws {
        let log = self.log(.sample(queueCapacity: 10))
        let taken = try await log.whileOpen {
            self.store.hang()
            try log.place().fill(.sample("0"))
            try await self.store.wait { $0.hanging == 1 }
            var taken = 1
            while self.spool.current.writes == 0 {
                if let place = log.reserve() {
                    place.fill(.sample("\(taken)"))
                    taken += 1
                }
                await Task.yield()
            }
            // A place is free once the writer has released the records that it wrote.
            while !log.hasPlace { await Task.yield() }
            self.store.hang(false)
            let expected = 1 + taken
            try await self.store.wait { $0.records.count == expected }
            return taken
        }
        #expect(self.store.actions == ["audit.opened"] + (0..<taken).map { "\($0)" } + ["audit.closed"])
    }

    @Test("A log spools before one tenant's share of the queue is full")
    func pressedByOneTenant() async throws {
        let log = self.log(.sample(queueCapacity: 40))
        try await log.whileOpen {
            self.store.hang()
            try log.place(of: 7).fill(.sample("0"))
            try await self.store.wait { $0.hanging == 1 }
            // Its share is 20.
            for number in 1...11 { try log.place(of: 7).fill(.sample("\(number)")) }
            try await self.spool.wait { $0.writes >= 1 }
            self.store.hang(false)
            try await self.store.wait { $0.records.count == 13 }
        }
    }

    @Test("A full spool refuses new places, and no record with a reserved place is lost")
    func full() async throws {
        // Only the spool is full, never the queue.
        let log = self.log(.sample(queueCapacity: .max / 2), spoolBytes: 2_000)
        let taken = try await log.whileOpen {
            self.store.refuse()
            let promised = try log.place()
            var taken = 0
            while let place = log.reserve() {
                place.fill(.sample("\(taken)"))
                taken += 1
                await Task.yield()
            }
            promised.fill(.sample("promised"))
            let count = taken
            #expect(self.spool.current.bytes.count <= 2_000)
            #expect(!log.hasPlace)
            self.store.refuse(false)
            try await self.store.wait { $0.records.count == count + 2 }
            try await log.commit(.sample("last"))
            #expect(log.hasPlace)
            return count
        }
        #expect(taken > 0)
        let expected = ["audit.opened"] + (0..<taken).map { "\($0)" } + ["promised", "last", "audit.closed"]
        try await self.store.expectIntact(expected)
    }

    @Test("If store and spool both refuse, no place is reserved until one of them recovers")
    func bothRefuse() async throws {
        let log = self.log()
        try await log.whileOpen {
            self.store.refuse()
            self.spool.refuse()
            try log.place().fill(.sample("first"))
            try await self.spool.wait { $0.refused >= 2 }
            #expect(!log.hasPlace)
            self.spool.refuse(false)
            try await self.spool.wait { $0.writes == 1 }
            // A place is free once the writer has released the record.
            while !log.hasPlace { await Task.yield() }
            self.spool.refuse()
            let refused = self.spool.current.refused
            try log.place().fill(.sample("second"))
            try await self.spool.wait { $0.refused >= refused + 2 }
            #expect(!log.hasPlace)
            self.store.refuse(false)
            try await log.commit(.sample("third"))
            #expect(log.hasPlace)
        }
        try await self.store.expectIntact(["audit.opened", "first", "second", "third", "audit.closed"])
    }

    @Test("A commit is refused while the store refuses, and is never written later")
    func commits() async throws {
        let log = self.log()
        try await log.whileOpen {
            self.store.refuse()
            for _ in 0..<3 {
                let error = await #expect(throws: GatewayError.self) { try await log.commit(.sample("refused")) }
                #expect(error?.code == .auditUnavailable)
                try log.place().fill(.sample("spooled"))
                #expect(await log.settle())
            }
            self.store.refuse(false)
            try await log.commit(.sample("later"))
        }
        let spooled = Array(repeating: "spooled", count: 3)
        try await self.store.expectIntact(["audit.opened"] + spooled + ["later", "audit.closed"])
    }

    @Test("A log that is cancelled while the store refuses leaves all records in the spool for the next start")
    func cancelled() async throws {
        let log = self.log()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await log.run() }
            try? await self.store.wait { $0.batches.count == 1 }
            self.store.refuse()
            for number in 0..<50 { log.reserve()?.fill(.sample("\(number)")) }
            try? await self.store.wait { $0.refused >= 2 }
            group.cancelAll()
            await group.waitForAll()
        }
        #expect(self.store.actions == ["audit.opened"])
        #expect(try await self.spooled().map(\.record.action) == (0..<50).map { "\($0)" })
        self.store.refuse(false)
        try await self.log().whileRunning {}
        let first = self.store.current.records.filter { $0.writer == 1 }.map(\.record.action)
        #expect(first == ["audit.opened"] + (0..<50).map { "\($0)" } + ["audit.recovered"])
        #expect(try await self.store.verdict() == .intact(records: 54))
    }

    @Test("A spool that can't be emptied is not used again, and its records are not stored twice")
    func stuck() async throws {
        let log = self.log()
        try await log.whileOpen {
            self.store.refuse()
            try log.place().fill(.sample("first"))
            #expect(await log.settle())
            self.spool.refuseCuts()
            self.store.refuse(false)
            try await log.commit(.sample("second"))
            #expect(!self.spool.current.bytes.isEmpty)
            let writes = self.spool.current.writes
            self.store.refuse()
            let refused = self.store.current.refused
            try log.place().fill(.sample("third"))
            try await self.store.wait { $0.refused >= refused + 2 }
            #expect(!log.hasPlace)
            #expect(self.spool.current.writes == writes)
            self.store.refuse(false)
        }
        let expected = ["audit.opened", "first", "second", "third", "audit.closed"]
        #expect(self.store.actions == expected)
        // The next start finds that the store already has the spooled records.
        let left = InMemorySpoolFile(self.spool.current.bytes)
        try await AuditLog.sample(store: self.store, spool: left).whileRunning {}
        #expect(self.store.actions == expected + ["audit.opened", "audit.closed"])
        #expect(left.current.bytes.isEmpty)
    }

    @Test("A spool that was tampered with is set aside, and an audit record reports it")
    func changedMeanwhile() async throws {
        let handler = InMemoryLogHandler()
        let log = self.log(logger: Logger(label: "test") { _ in handler })
        try await log.whileOpen {
            self.store.refuse()
            for (number, name) in ["first", "second", "lost"].enumerated() {
                try log.place().fill(.sample(name))
                try await self.spool.wait { $0.writes == number + 1 }
            }
            self.spool.tamper { $0[$0.count - 40] ^= 1 }
            // The store refuses the batch read before the change; then the writer reads the spool again.
            let refused = self.store.current.refused
            try await self.store.wait { $0.refused > refused }
            self.store.refuse(false)
            try await self.store.wait { !$0.records(of: "audit.spool_damaged").isEmpty }
            try await log.commit(.sample("later"))
        }
        let expected = ["audit.opened", "first", "second", "audit.spool_damaged", "later", "audit.closed"]
        try await self.store.expectIntact(expected)
        #expect(self.spool.current.aside.count == 1)
        #expect(handler.entries.contains { $0.level == .error && "\($0.message)".contains("was changed") })
    }

    @Test("A changed spool is set aside only after the audit has recorded the damage")
    func recordedFirst() async throws {
        let log = self.log()
        try await log.whileOpen {
            self.store.refuse()
            try log.place().fill(.sample("lost"))
            try await self.spool.wait { $0.writes == 1 }
            self.spool.tamper { $0[AuditSpool.headByteCount + 10] ^= 1 }
            // Waits for more than the one attempt that had read the spool before the change.
            let refused = self.store.current.refused
            try await self.store.wait { $0.refused > refused + 3 }
            #expect(self.spool.current.aside.isEmpty)
            self.store.refuse(false)
            try await self.spool.wait { !$0.aside.isEmpty }
        }
        try await self.store.expectIntact(["audit.opened", "audit.spool_damaged", "audit.closed"])
    }

    @Test("Metrics count spooled records, and the spool's gauge returns to zero")
    func metrics() async throws {
        let metrics = TestMetrics()
        let log = self.log(metrics: GatewayMetrics(factory: metrics))
        try await log.whileOpen {
            self.store.refuse()
            for number in 0..<10 { try log.place().fill(.sample("\(number)")) }
            #expect(await log.settle())
            #expect(try metrics.expectMeter("fcmgw_audit_spool_bytes").lastValue ?? 0 > 0)
            self.store.refuse(false)
            try await log.commit(.sample("last"))
            #expect(try metrics.expectMeter("fcmgw_audit_spool_bytes").lastValue == 0)
        }
        let label = "fcmgw_audit_records_total"
        #expect(metrics.counterTotal(label: label, dimensions: [("result", "spooled")]) == 10)
        #expect(metrics.counterTotal(label: label, dimensions: [("result", "written")]) == 11)
    }
}
