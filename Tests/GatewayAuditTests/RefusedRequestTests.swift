import GatewayTestKit
import Testing

@testable import GatewayAudit

@Suite("Audit records of refused requests, and tenants' shares", .timeLimit(.minutes(10)))
struct RefusedRequestTests {
    private static func refused(by key: String = "key:a", of tenant: UInt64 = 7, bytes: Int = 0) -> AuditRecord {
        var record = AuditRecord.sample("message.send")
        (record.tenant, record.tenantUID, record.principal) = ("shop", tenant, key)
        (record.outcome, record.code, record.recipients) = (.rejected, "device_rate_exceeded", 3)
        record.messageID = "\(key) \(bytes)"
        record.targets = Array(repeating: 1, count: bytes)
        return record
    }

    private static func fill(_ record: AuditRecord, in log: AuditLog) throws -> String? {
        try log.place(of: record.tenantUID).fill(refusal: record)
    }

    @Test("Beyond the budget, refusals of one key, action and code share one record and its message id")
    func summary() async throws {
        let store = InMemoryAuditStore()
        let log = AuditLog.sample(store: store)
        try await log.whileRunning {
            #expect(try Self.fill(Self.refused(bytes: 2 << 20), in: log) == nil)
            for _ in 1...5 { #expect(try Self.fill(Self.refused(bytes: 16), in: log) == "key:a 16") }
            #expect(try Self.fill(Self.refused(by: "key:b", bytes: 8), in: log) == "key:b 8")
            // Another tenant has its own budget.
            #expect(try Self.fill(Self.refused(of: 8), in: log) == nil)
            // An accepted send has its own record.
            var sent = Self.refused()
            sent.outcome = .accepted
            try log.place(of: 7).fill(sent)
        }
        let records = store.current.records(of: "message.send").sorted { ($0.messageID ?? "") < ($1.messageID ?? "") }
        #expect(records.map(\.messageID) == ["key:a 0", "key:a 0", "key:a 16", "key:a 2097152", "key:b 8"])
        let summary = records[2]
        #expect(summary.object == "5 refused until \(Timestamp.sample)")
        #expect(summary.recipients == 15)
        #expect(summary.targets == [])
        #expect(records[4].object == "1 refused until \(Timestamp.sample)")
    }

    @Test("Refusals without a message id are counted too, and keep no place in the queue")
    func withoutID() async throws {
        let store = InMemoryAuditStore()
        let log = AuditLog.sample(store: store, configuration: .sample(queueCapacity: 8))
        try await log.whileRunning {
            _ = try Self.fill(Self.refused(bytes: 2 << 20), in: log)
            var record = Self.refused()
            (record.action, record.messageID) = ("topic.subscribe", nil)
            for _ in 1...9 { #expect(try Self.fill(record, in: log) == "") }
        }
        let records = store.current.records(of: "topic.subscribe")
        #expect(records.map(\.object) == ["9 refused until \(Timestamp.sample)"])
    }

    @Test("A summary is written while the log runs, and the next refusal starts a new one")
    func summaryInterval() async throws {
        let store = InMemoryAuditStore()
        var configuration = AuditLog.Configuration.sample()
        configuration.summaryInterval = .zero
        let log = AuditLog.sample(store: store, configuration: configuration)
        try await log.whileRunning {
            _ = try Self.fill(Self.refused(bytes: 2 << 20), in: log)
            for number in 1...3 {
                _ = try Self.fill(Self.refused(bytes: number), in: log)
                try await store.wait { $0.records(of: "message.send").count == 1 + number }
            }
        }
        let ids = store.current.records(of: "message.send").map(\.messageID)
        #expect(ids == ["key:a 2097152", "key:a 1", "key:a 2", "key:a 3"])
    }

    @Test("The budget is refilled over time")
    func budget() throws {
        var share = AuditShare()
        var answers = [share.mayWriteRefusals(at: 0)]
        share.chargeRefusal(2 << 20, at: 0)
        answers += [share.mayWriteRefusals(at: 0), share.mayWriteRefusals(at: 2_000_000)]
        share.chargeRefusal(1 << 20, at: 2_000_000)
        // A megabyte beyond the burst takes four seconds to refill.
        answers += [share.mayWriteRefusals(at: 3_900_000_000), share.mayWriteRefusals(at: 4_100_000_000)]
        #expect(answers == [true, false, true, false, true])
        // A clock that is set back costs at most one burst.
        share.chargeRefusal(2 << 20, at: 4_100_000_000)
        let back = [share.mayWriteRefusals(at: -3_600_000_000_000), share.mayWriteRefusals(at: -3_590_000_000_000)]
        #expect(back == [false, true])
    }

    @Test("One tenant's records take at most half of the queue and leave the rest to others")
    func queueShare() async throws {
        let store = InMemoryAuditStore()
        let log = AuditLog.sample(store: store, configuration: .sample(queueCapacity: 10))
        try await log.whileOpen {
            store.hang()
            var sent = Self.refused()
            sent.outcome = .accepted
            for _ in 1...5 { try log.place(of: 7).fill(sent) }
            #expect(throws: SampleError.self) { _ = try log.place(of: 7) }
            for _ in 1...3 { try log.place(of: 8).fill(Self.refused(of: 8)) }
            #expect(log.hasPlace)
            store.hang(false)
            try await store.wait { $0.records(of: "message.send").count == 8 }
            try await log.commit(.sample("after"))
            for _ in 1...5 {
                let place = try log.place(of: 7)
                _ = consume place
            }
        }
    }

    @Test("One tenant's records take at most half of the spool, and have space again once it is empty")
    func spoolShare() async throws {
        let store = InMemoryAuditStore()
        let spool = InMemorySpoolFile()
        var configuration = AuditLog.Configuration.sample()
        configuration.spoolBytes = 40_000
        let log = AuditLog.sample(store: store, spool: spool, spoolBytes: 40_000, configuration: configuration)
        try await log.whileOpen {
            store.refuse()
            var sent = Self.refused(bytes: 9_000)
            sent.outcome = .accepted
            // Two records take less than half of the spool, so a third is accepted.
            for number in 1...3 {
                try log.place(of: 7).fill(sent)
                try await spool.wait { $0.writes >= number }
            }
            try log.place(of: 8).fill(Self.refused(of: 8))
            try await spool.wait { $0.writes >= 4 }
            #expect(throws: SampleError.self) { _ = try log.place(of: 7) }
            #expect(log.hasPlace)
            store.refuse(false)
            try await store.wait { $0.records(of: "message.send").count == 4 }
            try await spool.wait { $0.bytes.isEmpty }
            try await log.commit(.sample("after"))
            let place = try log.place(of: 7)
            _ = consume place
        }
    }
}
