import GatewayCore
import GatewayStorage
import GatewayTestKit
import Testing

@testable import GatewayService

struct AuditRetentionServiceTests {
    @Test("After a truncation the remaining and new records verify and are found")
    func truncation() async throws {
        try await AuditTrailFixture.with { fixture in
            var first = AuditChain(writer: 1)
            try await fixture.write(60, to: &first, days: 20, state: .closed)
            var second = AuditChain(writer: 2)
            try await fixture.write(60, to: &second, days: 40)
            #expect(await fixture.checkpointer.checkpoint())
            let whole = 21 * 60 + 1 + 41 * 60
            #expect(try await fixture.verify() == .intact(records: whole))

            let removed = await fixture.retain(days: 30)
            #expect(removed > 21 * 60 && removed < whole - 29 * 60)
            // Also before a checkpoint covers the truncation.
            #expect(try await fixture.verify() == .intact(records: whole - removed))
            #expect(await fixture.checkpointer.checkpoint())
            #expect(try await fixture.verify() == .intact(records: whole - removed))
            #expect(await fixture.retain(days: 30) == 0)

            try await fixture.write(5, to: &second, tenant: "acme")
            try await fixture.write(5, to: &second, state: .closed, tenant: "late")
            #expect(await fixture.checkpointer.checkpoint())
            #expect(try await fixture.verify() == .intact(records: whole - removed + 11))
            var query = AuditQuery(limit: 1_000)
            query.tenant = "late"
            #expect(try await fixture.store.page(query).records.count == 5)
            let all = try await fixture.store.page(AuditQuery(limit: 10_000)).records.count
            #expect(all == whole - removed + 11)
        }
    }

    @Test("Old checkpoints are removed with the records of their time, and the rest verifies")
    func checkpoints() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            for _ in 1...40 {
                try await fixture.write(5, to: &chain)
                #expect(await fixture.checkpointer.checkpoint())
                fixture.clock.advance(by: .seconds(86_400))
            }
            let before = try await fixture.store.allCheckpoints().map(\.number)
            #expect(before == Array(1...41))
            let removed = await fixture.retain(days: 30)
            #expect(removed > 0)
            #expect(try await fixture.store.allCheckpoints().count == 41)
            try await fixture.write(5, to: &chain)
            #expect(await fixture.checkpointer.checkpoint())
            let after = try await fixture.store.allCheckpoints()
            let oldest = try #require(after.first?.content)
            #expect(after.map(\.number) == Array(oldest.number...42))
            #expect(oldest.time >= fixture.clock.now().advanced(by: .seconds(-31 * 86_400)) && oldest.number > 8)
            #expect(try await fixture.verify() == .intact(records: 205 - removed))
        }
    }

    @Test("A tenant whose records were all removed is found again after a new record")
    func forgottenTenant() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(10, to: &chain, days: 3, tenant: "old")
            try await fixture.write(10, to: &chain, days: 30, tenant: "new")
            #expect(await fixture.retain(days: 20) > 40)
            try await fixture.write(1, to: &chain, tenant: "old")
            #expect(await fixture.checkpointer.checkpoint())
            let verdict = try await fixture.verify()
            guard case .intact = verdict else {
                Issue.record("\(verdict)")
                return
            }
            var query = AuditQuery(limit: 10)
            query.tenant = "old"
            #expect(try await fixture.store.page(query).records.count == 1)
        }
    }

    @Test("A clock jump of a running gateway removes no records; a start under the moved clock does")
    func clockOfRunningGateway() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(10, to: &chain, days: 10)
            // A gap without records counts as a month at most, which exceeds the 20 days kept.
            let clock = fixture.clock
            try await fixture.retaining(days: 20) { service in
                clock.advance(by: .seconds(5_000 * 86_400))
                #expect(await service.pass() == 0)
                #expect(await service.pass() == 0)
            }
            // A gateway that starts under the moved clock trusts it.
            #expect(await fixture.retain(days: 20) > 0)
        }
    }

    @Test(
        "Forged records with new hashes are not removed, wherever the forgery ends",
        arguments: [1_000, 1_001, 1_500, 1_900, 3_000],
        [false, true]
    )
    func forged(last: Int, hasCheckpoint: Bool) async throws {
        try await AuditTrailFixture.with { fixture in
            var (genuine, forged) = (AuditChain(writer: 1), AuditChain(writer: 1))
            for day in 1...30 {
                var stored: [ChainedAuditRecord] = []
                for _ in 1...100 {
                    var record = fixture.record()
                    let right = genuine.append(record)
                    if (900...last).contains(right.sequence) {
                        if right.sequence == 900 { record.recipients = 1 }
                        stored.append(forged.append(record))
                    } else {
                        stored.append(right)
                        if right.sequence < 900 { _ = forged.append(record) }
                    }
                }
                try await fixture.store.append(stored, head: fixture.sealer.head(of: genuine, state: .open))
                if hasCheckpoint, day == 18 { #expect(await fixture.checkpointer.checkpoint()) }
                fixture.clock.advance(by: .seconds(86_400))
            }
            let told = InMemoryAuditStore()
            let removed = try await fixture.retaining(days: 15, told: told) { await $0.pass() }
            #expect(removed == 0)
            #expect(told.current.records(of: "audit.removed").map(\.outcome) == [.intent, .failed])
            #expect(told.current.records(of: "audit.removed").last?.object == "no records")
            #expect(try await fixture.store.truncations().isEmpty)
            guard case .tampered(let place, _) = try await fixture.verify() else {
                Issue.record("nothing is noticed")
                return
            }
            let firstForged = min(last + 1, hasCheckpoint ? 1_800 : 3_000)
            #expect(place == AuditChain.Position(writer: 1, sequence: firstForged))
        }
    }

    @Test("A chain with a forged head is not truncated", arguments: [AuditHead.State.open, .closed])
    func forgedHead(state: AuditHead.State) async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(50, to: &chain, days: 30)
            let record = chain.append(fixture.record())
            let sealer = AuditSealer(auditKey: .sample("forger"))
            try await fixture.store.append([record], head: sealer.head(of: chain, state: state))
            #expect(await fixture.retain(days: 10) == 0)
        }
    }

    @Test("A failed pass records the number of records that it removed", arguments: [1, 2])
    func failingPass(removals: Int) async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(100, to: &chain, days: 50)
            let told = InMemoryAuditStore()
            let left = Observed(removals)
            let store = InterposedAuditStore(
                fixture.store,
                beforeRemoval: { () throws(GatewayError) in
                    left.change { $0 -= 1 }
                    guard left.current < 0 else { return }
                    throw GatewayError(.storeUnavailable, "The store fails, as it was told to")
                }
            )
            let removed = try await fixture.retaining(days: 15, store: store, told: told) { await $0.pass() }
            #expect(removed == removals * 1_000)
            let records = told.current.records(of: "audit.removed")
            #expect(records.map(\.object) == ["records of writers 1", "\(removals * 1_000) records of writers 1"])
            #expect(records.map(\.outcome) == [.intent, .failed])
            let whole = 51 * 100
            #expect(try await fixture.verify() == .intact(records: whole - removals * 1_000))
        }
    }

    @Test("Records are removed only after the intent is recorded")
    func intent() async throws {
        try await AuditTrailFixture.with { fixture in
            var chain = AuditChain(writer: 1)
            try await fixture.write(100, to: &chain, days: 50)
            let told = InMemoryAuditStore()
            try await fixture.retaining(days: 15, told: told) { service in
                try await told.wait { !$0.records(of: "audit.opened").isEmpty }
                told.refuse()
                #expect(await service.pass() == 0)
                told.refuse(false)
                #expect(await service.pass() > 0)
            }
            #expect(told.current.records(of: "audit.removed").map(\.outcome) == [.intent, .done])
        }
    }
}
