import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("Readiness")
struct ReadinessTests {
    @Test("A hold before or after readiness is set stops serving until its release")
    func held() {
        for isHeldFirst in [true, false] {
            let readiness = Readiness()
            if isHeldFirst { readiness.hold() }
            readiness.set(true)
            #expect(readiness.isServing != isHeldFirst)
            readiness.hold()
            #expect(!readiness.isServing)
            readiness.release()
            #expect(readiness.isServing)
        }
    }

    @Test("The release of a hold does not make an unready gateway ready")
    func released() {
        let readiness = Readiness()
        readiness.hold()
        readiness.release()
        #expect(!readiness.isServing)
        readiness.set(true)
        readiness.set(false)
        #expect(!readiness.isServing)
    }

    // MARK: The audit

    /// The commit timeout of the sample configuration.
    private static let commitTimeout = Duration.seconds(600)

    private static func ready(with log: AuditLog) -> Readiness {
        let readiness = Readiness(audit: log)
        readiness.set(true)
        return readiness
    }

    @Test("If neither store nor spool accepts a record, the gateway stays ready only for the commit timeout")
    func stalled() async throws {
        let (store, spool) = (InMemoryAuditStore(), InMemorySpoolFile())
        let log = AuditLog.sample(store: store, spool: spool)
        let readiness = Self.ready(with: log)
        try await log.whileRunning {
            try await store.wait { $0.batches.count == 1 }
            store.refuse()
            // A spooled record counts as recorded.
            try log.place().fill(.sample("spooled"))
            #expect(await log.settle())
            #expect(readiness.refusal(at: .now + Self.commitTimeout) == nil)
            spool.refuse()
            let before = Uptime.now
            try log.place().fill(.sample("waiting"))
            let refused = store.current.refused
            try await store.wait { $0.refused >= refused + 2 }
            #expect(readiness.refusal(at: before + Self.commitTimeout - .seconds(1)) == nil)
            #expect(readiness.refusal(at: .now + Self.commitTimeout) == .auditStalled)
            readiness.set(false)
            #expect(readiness.refusal(at: .now + Self.commitTimeout) == .notServing)
            readiness.set(true)
            // The spool alone is enough.
            spool.refuse(false)
            #expect(await log.settle())
            #expect(readiness.refusal(at: .now + Self.commitTimeout) == nil)
            store.refuse(false)
        }
        #expect(store.actions == ["audit.opened", "spooled", "waiting", "audit.closed"])
    }

    @Test("A commit that the store refuses stalls only a strict audit, even with a spool", arguments: [false, true])
    func stalledCommits(isStrict: Bool) async throws {
        let store = InMemoryAuditStore()
        var configuration = AuditLog.Configuration.sample()
        configuration.mode = isStrict ? .strict : .bounded
        let log = AuditLog.sample(store: store, spool: InMemorySpoolFile(), configuration: configuration)
        let readiness = Self.ready(with: log)
        try await log.whileRunning {
            try await store.wait { $0.batches.count == 1 }
            store.refuse()
            await #expect(throws: GatewayError.self) { try await log.commit(.sample("refused")) }
            #expect(readiness.refusal(at: .now + Self.commitTimeout) == (isStrict ? .auditStalled : nil))
            store.refuse(false)
            try await log.commit(.sample("taken"))
            #expect(readiness.refusal(at: .now + Self.commitTimeout) == nil)
        }
    }
}
