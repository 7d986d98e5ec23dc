import GatewayAudit
import GatewayTestKit
import InMemoryLogging
import Logging
import ServiceLifecycleTestKit
import Testing

@Suite("AuditLog from start to end", .timeLimit(.minutes(10)))
struct AuditLogLifecycleTests {
    private let store = InMemoryAuditStore()

    // MARK: Start

    @Test("Each start opens a chain of its own")
    func writers() async throws {
        for writer in 1...3 {
            let chain = try await AuditLog.sample(store: self.store).open()
            #expect(chain.writer == writer)
        }
        #expect(self.store.current.heads.map(\.writer) == [1, 2, 3])
    }

    @Test("A start closes the chains that ended uncleanly, each with a record")
    func recovery() async throws {
        let fixture = try await AuditFixture((5, .closed), (7, .open), (3, .recovered), (2, .open))
        #expect(try await fixture.verify() == .unclean(writer: 2, records: 17))
        let handler = InMemoryLogHandler()
        let clock = ManualClock()
        clock.advance(by: .seconds(60))
        let log = AuditLog.sample(store: fixture.store, clock: clock, logger: Logger(label: "test") { _ in handler })
        try await log.whileRunning {}
        let recovered = fixture.store.current.records.filter { $0.record.action == "audit.recovered" }
        #expect(recovered.map(\.writer) == [2, 4])
        #expect(recovered.map(\.sequence) == [8, 3])
        #expect(recovered.allSatisfy { $0.record.time == clock.now() && $0.record.principal == "gateway" })
        #expect(fixture.store.current.heads.map(\.state) == [.closed, .recovered, .recovered, .recovered, .closed])
        #expect(try await fixture.verify() == .intact(records: 21))
        #expect(handler.entries.filter { $0.level == .warning }.count == 2)
    }

    @Test("A start does not close an open chain whose seal is not genuine")
    func forgedHead() async throws {
        let fixture = try await AuditFixture((5, .open))
        // Removes the last record and sets the head back to match.
        fixture.store.tamper { contents in
            contents.records.removeAll { $0.sequence == 5 }
            contents.heads[0].sequence = 4
            contents.heads[0].hash = contents.records.last?.hash ?? []
        }
        let handler = InMemoryLogHandler()
        let log = AuditLog.sample(store: fixture.store, logger: Logger(label: "test") { _ in handler })
        try await log.whileRunning {}
        #expect(fixture.store.current.records(of: "audit.recovered").isEmpty)
        #expect(try await fixture.verify().badPlace == AuditChain.Position(writer: 1, sequence: 4))
        #expect(handler.entries.contains { $0.level == .error })
    }

    @Test("If the store refuses at the start, the log does not run and refuses commits")
    func refusedStart() async throws {
        self.store.refuse()
        let log = AuditLog.sample(store: self.store)
        let error = await #expect(throws: GatewayError.self) { try await log.run() }
        #expect(error?.code == .storeUnavailable)
        #expect(!log.hasPlace)
        await #expect(throws: GatewayError.self) { try await log.commit(.sample()) }
        #expect(self.store.current.records.isEmpty)
    }

    @Test("A commit that waits for the start is refused when the start fails")
    func commitBeforeRefusedStart() async throws {
        let log = AuditLog.sample(store: self.store)
        self.store.hang()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                let error = await #expect(throws: GatewayError.self) { try await log.run() }
                #expect(error?.code == .storeUnavailable)
            }
            group.addTask {
                let error = await #expect(throws: GatewayError.self) { try await log.commit(.sample()) }
                #expect(error?.code == .auditUnavailable)
            }
            try await self.store.wait { $0.hanging == 1 }
            self.store.refuse()
            self.store.hang(false)
            try await group.waitForAll()
        }
        #expect(self.store.current.records.isEmpty)
    }

    @Test("Waiting for the open chain returns true once it opens, false if the start fails", arguments: [false, true])
    func whenOpen(isRefusing: Bool) async throws {
        let log = AuditLog.sample(store: self.store)
        if isRefusing { self.store.refuse() }
        let isOpen = Task { await log.whenOpen() }
        try? await log.whileRunning { _ = await isOpen.value }
        #expect(await isOpen.value == !isRefusing)
        #expect(self.store.actions.first == (isRefusing ? nil : "audit.opened"))
    }

    @Test("Running a log a second time stops the process")
    func secondRun() async {
        await #expect(processExitsWith: .failure) {
            let log = AuditLog.sample(store: InMemoryAuditStore())
            try await log.whileRunning {}
            try await log.run()
        }
    }

    // MARK: End

    @Test("A record whose place was reserved before shutdown is still written")
    func recordAfterShutdownBegan() async throws {
        let log = AuditLog.sample(store: self.store)
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                let dropped = try log.place()
                let place = try log.place()
                group.addTask { try await log.run() }
                try await self.store.wait { $0.batches.count == 1 }
                trigger.triggerGracefulShutdown()
                // No more places are reserved, and the log waits for the reserved ones.
                while log.hasPlace { await Task.yield() }
                await #expect(throws: GatewayError.self) { try await log.commit(.sample("late commit")) }
                #expect(self.store.current.heads.map(\.state) == [.open])
                place.fill(.sample("late record"))
                try await self.store.wait { $0.records.count == 2 }
                #expect(self.store.current.heads.map(\.state) == [.open])
                _ = consume dropped
                try await group.waitForAll()
            }
        }
        try await self.store.expectIntact(["audit.opened", "late record", "audit.closed"])
    }

    @Test("Shutdown waits for a store that refuses, so that nothing is lost")
    func shutdownWhileRefused() async throws {
        let log = AuditLog.sample(store: self.store)
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await log.run() }
                try await self.store.wait { $0.batches.count == 1 }
                self.store.refuse()
                try log.place().fill(.sample("waiting"))
                try await self.store.wait { $0.refused >= 1 }
                trigger.triggerGracefulShutdown()
                let refused = self.store.current.refused
                try await self.store.wait { $0.refused >= refused + 2 }
                self.store.refuse(false)
                try await group.waitForAll()
            }
        }
        #expect(self.store.actions == ["audit.opened", "waiting", "audit.closed"])
    }

    @Test("A log that is cancelled while the store refuses leaves its chain open and logs the loss")
    func cancelledWhileRefused() async throws {
        let handler = InMemoryLogHandler()
        let log = AuditLog.sample(store: self.store, logger: Logger(label: "test") { _ in handler })
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                let error = await #expect(throws: GatewayError.self) { try await log.run() }
                #expect(error?.code == .storeUnavailable)
            }
            try? await self.store.wait { $0.batches.count == 1 }
            self.store.refuse()
            log.reserve()?.fill(.sample("lost"))
            try? await self.store.wait { $0.refused >= 1 }
            group.cancelAll()
            await group.waitForAll()
        }
        #expect(self.store.actions == ["audit.opened"])
        #expect(try await self.store.verdict() == .unclean(writer: 1, records: 1))
        #expect(handler.entries.contains { $0.message == "The audit log ended before all was written" })
    }

    @Test("With a spool, stopping while the store is unavailable loses no record and is no error", arguments: [0, 3])
    func stoppedWhileAway(count: Int) async throws {
        let (handler, spool) = (InMemoryLogHandler(), InMemorySpoolFile())
        let log = AuditLog.sample(store: self.store, spool: spool, logger: Logger(label: "test") { _ in handler })
        let names = (0..<count).map { "\($0)" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await log.run() }
            try await self.store.wait { $0.batches.count == 1 }
            self.store.refuse()
            for name in names { try log.place().fill(.sample(name)) }
            if count > 0 { try await spool.wait { !$0.bytes.isEmpty } }
            group.cancelAll()
            try await group.waitForAll()
        }
        #expect(self.store.actions == ["audit.opened"])
        #expect(handler.entries.filter { "\($0.message)".contains("stays open") }.map(\.level) == [.warning])
        self.store.refuse(false)
        try await AuditLog.sample(store: self.store, spool: spool).whileRunning {}
        #expect(self.store.actions == ["audit.opened"] + names + ["audit.recovered", "audit.opened", "audit.closed"])
    }

    @Test("A record that arrives after the log has ended is logged as lost")
    func recordAfterEnd() async throws {
        let handler = InMemoryLogHandler()
        let log = AuditLog.sample(store: self.store, logger: Logger(label: "test") { _ in handler })
        let place = try log.place()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await log.run() }
            try? await self.store.wait { $0.batches.count == 1 }
            group.cancelAll()
            await group.waitForAll()
        }
        place.fill(.sample("too late"))
        #expect(self.store.actions == ["audit.opened", "audit.closed"])
        #expect(handler.entries.contains { $0.message == "A record came after the audit log had ended" })
        #expect(!log.hasPlace)
    }
}
