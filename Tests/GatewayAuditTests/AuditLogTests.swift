import GatewayAudit
import GatewayTestKit
import InMemoryLogging
import Logging
import MetricsTestKit
import Testing

@Suite("AuditLog", .timeLimit(.minutes(10)))
struct AuditLogTests {
    private let store = InMemoryAuditStore()

    private func fill(_ actions: String..., in log: AuditLog) throws {
        for action in actions { try log.place().fill(.sample(action)) }
    }

    // MARK: Places

    @Test("The queue has as many places as configured, and a dropped place is free again")
    func capacity() throws {
        let log = AuditLog.sample(store: self.store, configuration: .sample(queueCapacity: 3))
        let first = try log.place()
        do {
            let second = try log.place()
            let third = try log.place()
            #expect(!log.hasPlace)
            _ = consume third
            _ = consume second
        }
        let fourth = try log.place()
        let fifth = try log.place()
        #expect(!log.hasPlace)
        // A filled place stays taken.
        first.fill(.sample())
        #expect(!log.hasPlace)
        _ = consume fourth
        #expect(log.hasPlace)
        _ = consume fifth
    }

    @Test("Records that a slow store is writing keep their places")
    func capacityWhileWriting() async throws {
        let log = AuditLog.sample(store: self.store, configuration: .sample(queueCapacity: 3))
        try await log.whileOpen {
            self.store.hang()
            try self.fill("first", in: log)
            try await self.store.wait { $0.hanging == 1 }
            try self.fill("second", "third", in: log)
            #expect(!log.hasPlace)
            self.store.hang(false)
            try await self.store.wait { $0.records.contains { $0.record.action == "third" } }
            // The places are free once a later record is durable.
            try await log.commit(.sample("fourth"))
            #expect(log.hasPlace)
        }
        #expect(self.store.actions == ["audit.opened", "first", "second", "third", "fourth", "audit.closed"])
    }

    private static let largeRecord: AuditRecord = {
        var record = AuditRecord.sample("large")
        record.targets = Array(repeating: 7, count: 16_000)
        return record
    }()

    @Test("The queue's byte limit counts waiting records, and records being written until they are durable")
    func byteBound() async throws {
        var configuration = AuditLog.Configuration.sample(queueCapacity: 1_000)
        configuration.queueBytes = 40_000
        let log = AuditLog.sample(store: self.store, configuration: configuration)
        let record = Self.largeRecord
        try await log.whileOpen {
            self.store.hang()
            // A reserved place accepts a record of any size.
            let promised = try log.place()
            try log.place().fill(record)
            try log.place().fill(record)
            #expect(log.hasPlace)
            try log.place().fill(record)
            #expect(!log.hasPlace)
            promised.fill(record)
            try await self.store.wait { $0.hanging == 1 }
            #expect(!log.hasPlace)
            self.store.hang(false)
            try await self.store.wait { $0.records.count { $0.record.action == "large" } == 4 }
            try await log.commit(.sample("last"))
            #expect(log.hasPlace)
        }
        #expect(self.store.actions.count { $0 == "large" } == 4)
    }

    // MARK: Writing

    @Test("Waiting records are written in one batch, in order, between the opening and closing records")
    func batches() async throws {
        let log = AuditLog.sample(store: self.store)
        let actions = (0..<100).map { "action \($0)" }
        for action in actions { try self.fill(action, in: log) }
        try await log.whileRunning { try await self.store.wait { $0.records.count == 101 } }
        try await self.store.expectIntact(["audit.opened"] + actions + ["audit.closed"])
        #expect(self.store.current.batches == [1, 100, 1])
        #expect(self.store.current.heads.map(\.state) == [.closed])
    }

    @Test("Records of many concurrent callers are all written, each once")
    func concurrentCallers() async throws {
        let log = AuditLog.sample(store: self.store)
        try await log.whileRunning {
            await withTaskGroup(of: Void.self) { group in
                for caller in 0..<10 {
                    group.addTask {
                        for number in 0..<100 {
                            log.reserve()?.fill(.sample("\(caller)/\(number)"))
                        }
                    }
                }
            }
        }
        let actions = self.store.actions.dropFirst().dropLast()
        #expect(Set(actions).count == 1_000)
        #expect(actions.count == 1_000)
        for caller in 0..<10 {
            let own = actions.filter { $0.hasPrefix("\(caller)/") }
            #expect(own == (0..<100).map { "\(caller)/\($0)" })
        }
        #expect(try await self.store.verdict() == .intact(records: 1_002))
    }

    @Test("A commit returns when its record is in the store")
    func commit() async throws {
        let log = AuditLog.sample(store: self.store)
        try await log.whileRunning {
            for number in 0..<20 {
                try await log.commit(.sample("\(number)"))
                #expect(self.store.actions.last == "\(number)")
            }
        }
        #expect(try await self.store.verdict() == .intact(records: 22))
    }

    @Test("A commit by a cancelled task is still recorded")
    func cancelledCommit() async throws {
        let log = AuditLog.sample(store: self.store)
        try await log.whileRunning {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.cancelAll()
                group.addTask { try await log.commit(.sample("cancelled")) }
                try await group.waitForAll()
            }
            #expect(self.store.actions == ["audit.opened", "cancelled"])
        }
    }

    // MARK: A store that fails

    @Test("While the store refuses, no place is reserved; queued records are written in order when it recovers")
    func failingStore() async throws {
        let log = AuditLog.sample(store: self.store)
        try await log.whileOpen {
            let early = try log.place()
            self.store.refuse()
            try self.fill("first", "second", in: log)
            try await self.store.wait { $0.refused >= 2 }
            #expect(!log.hasPlace)
            // A place that was reserved earlier stays valid.
            early.fill(.sample("third"))
            let refused = self.store.current.refused
            try await self.store.wait { $0.refused >= refused + 2 }
            #expect(!log.hasPlace)
            #expect(self.store.actions == ["audit.opened"])
            self.store.refuse(false)
            try await self.store.wait { $0.records.count == 4 }
            try await log.commit(.sample("fourth"))
            try self.fill("fifth", in: log)
        }
        let expected = ["audit.opened", "first", "second", "third", "fourth", "fifth", "audit.closed"]
        try await self.store.expectIntact(expected)
    }

    @Test("Records that arrive during a failing write are written after the records of that write")
    func orderAfterFailure() async throws {
        let log = AuditLog.sample(store: self.store)
        try await log.whileOpen {
            self.store.hang()
            try self.fill("first", in: log)
            try await self.store.wait { $0.hanging == 1 }
            try self.fill("second", "third", in: log)
            self.store.refuse()
            self.store.hang(false)
            try await self.store.wait { $0.refused >= 2 }
            self.store.refuse(false)
        }
        #expect(self.store.actions == ["audit.opened", "first", "second", "third", "audit.closed"])
    }

    @Test("A refused commit is never written later, and an idle log notices that the store has recovered")
    func refusedCommit() async throws {
        let log = AuditLog.sample(store: self.store)
        try await log.whileOpen {
            self.store.refuse()
            for _ in 0..<3 {
                let error = await #expect(throws: GatewayError.self) { try await log.commit(.sample("refused")) }
                #expect(error?.code == .auditUnavailable)
            }
            // The writer retries once it knows that the store fails.
            let refused = self.store.current.refused
            try await self.store.wait { $0.refused > refused }
            #expect(!log.hasPlace)
            self.store.refuse(false)
            try await self.store.wait { $0.batches.count == 2 }
            try await log.commit(.sample("later"))
            #expect(log.hasPlace)
        }
        try await self.store.expectIntact(["audit.opened", "later", "audit.closed"])
    }

    @Test("A commit behind a hanging store throws after its timeout and is never written later")
    func hangingStore() async throws {
        let log = AuditLog.sample(store: self.store, configuration: .sample(commitTimeout: .milliseconds(20)))
        try await log.whileOpen {
            self.store.hang()
            try self.fill("first", in: log)
            try await self.store.wait { $0.hanging == 1 }
            // The store does not answer before this throws.
            let error = await #expect(throws: GatewayError.self) { try await log.commit(.sample("late")) }
            #expect(error?.code == .auditUnavailable)
            self.store.hang(false)
        }
        #expect(self.store.actions == ["audit.opened", "first", "audit.closed"])
    }

    @Test("A failure of the store and its recovery are logged once each, without any record's content")
    func logged() async throws {
        let handler = InMemoryLogHandler()
        let log = AuditLog.sample(store: self.store, logger: Logger(label: "test") { _ in handler })
        try await log.whileOpen {
            self.store.refuse()
            try self.fill("canary-action", in: log)
            try await self.store.wait { $0.refused >= 2 }
            self.store.refuse(false)
        }
        #expect(handler.entries.map(\.message) == ["The audit log can't be written", "The audit log is written again"])
        #expect(!handler.entries.contains { "\($0)".contains("canary-action") })
    }

    @Test("Metrics count written and refused records, and the queue's gauge returns to zero")
    func metrics() async throws {
        let metrics = TestMetrics()
        let log = AuditLog.sample(store: self.store, metrics: GatewayMetrics(factory: metrics))
        try await log.whileOpen {
            self.store.refuse()
            try self.fill("first", "second", in: log)
            // The writer may try the first record alone.
            let refused = self.store.current.refused
            try await self.store.wait { $0.refused >= refused + 3 }
            self.store.refuse(false)
            try await self.store.wait { $0.records.count == 3 }
        }
        let label = "fcmgw_audit_records_total"
        #expect(metrics.counterTotal(label: label, dimensions: [("result", "written")]) == 2)
        #expect(metrics.counterTotal(label: label, dimensions: [("result", "refused")]) >= 4)
        #expect(try metrics.expectMeter("fcmgw_audit_queue_records").lastValue == 0)
        let timer = try metrics.expectTimer("fcmgw_audit_write_duration_seconds", [("result", "written")])
        #expect(timer.values.count == 1)
    }
}
