import FCMModel
import GatewayTestKit
import InMemoryLogging
import Logging
import Testing

@testable import GatewayCore

/// Replicas that share a store and read each other's reports.
struct SharedRetiredTokensTests {
    private struct Replica {
        let retired: RetiredTokens
        let profile: TenantProfile
        let clock: ManualClock

        init(
            _ store: TestRetiredTokenStore,
            _ clock: ManualClock,
            logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        ) async throws {
            let profile = try TenantProfile.sample()
            self.profile = profile
            self.clock = clock
            self.retired = .sample(store: store, clock: clock, logger: logger, profiles: { [profile] })
            try await self.retired.load()
        }

        private func pseudonyms(_ tokens: [String]) -> [Pseudonym] {
            tokens.map { self.profile.pseudonymizer.pseudonym(of: $0) }
        }

        func learn(_ outcome: RecipientOutcome, of tokens: [String], isListed: Bool = false) {
            self.retired.learn(
                SendResult(tokens.map { _ in outcome }, upstreamCode: "200"),
                to: .tokens(tokens),
                self.pseudonyms(tokens),
                isListed: isListed,
                of: self.profile,
                at: self.clock.now()
            )
        }

        func screen(_ token: String) -> RetiredTokens.Screening {
            self.retired.screen(.token(token), self.pseudonyms([token]), of: self.profile, at: self.clock.now())
        }

        func delete(_ token: String) async throws -> Bool {
            try await self.retired.delete(self.profile.pseudonymizer.pseudonym(of: token), of: self.profile)
        }

        func fed() async throws -> [String] {
            try await self.retired.feed(of: self.profile, after: nil, limit: 1_000).tokens.map(\.text)
        }
    }

    private static func pair() async throws -> (one: Replica, two: Replica, store: TestRetiredTokenStore) {
        let clock = ManualClock()
        let store = TestRetiredTokenStore(clock: clock)
        return (try await Replica(store, clock), try await Replica(store, clock), store)
    }

    private static let accepted = RecipientOutcome.accepted(Acceptance(messageID: "m"))
    private static let dead = RecipientOutcome.rejected(.unregistered)

    @Test(
        "The first failure to write or settle in a store outage and its end are logged, and nothing between",
        arguments: [true, false]
    )
    func loggedOutage(writes: Bool) async throws {
        let clock = ManualClock()
        let (store, logs) = (TestRetiredTokenStore(clock: clock), InMemoryLogHandler())
        let replica = try await Replica(store, clock, logger: Logger(label: "test") { _ in logs })
        if writes { replica.learn(Self.dead, of: ["gone"]) }
        for refuses in [true, false] {
            store.refuse(refuses)
            for _ in 0..<3 {
                if writes { await replica.retired.flush() } else { await replica.retired.settle() }
            }
        }
        #expect(logs.entries.map(\.level) == [.error, .notice])
    }

    @Test("A token that one replica reports as dead is refused by the other and fed once")
    func learnt() async throws {
        let (one, two, store) = try await Self.pair()
        one.learn(Self.dead, of: ["a"])
        #expect(two.screen("a") == .clear)
        for replica in [one, two] { await replica.retired.settle() }
        for replica in [one, two] { #expect(replica.screen("a") == .refused([true])) }
        // The other replica sent to it meanwhile.
        two.learn(Self.dead, of: ["a"])
        await two.retired.flush()
        #expect(try await store.entries().count == 1)
        one.clock.advance(by: .seconds(3_900))
        for replica in [one, two] { await replica.retired.settleAndFlush() }
        #expect(try await one.fed() == ["a"])
    }

    @Test("A token deleted on one replica is cleared on all, even if only another replica reported it")
    func deleted() async throws {
        let (one, two, store) = try await Self.pair()
        for replica in [one, two] { replica.learn(Self.dead, of: ["a"]) }
        one.learn(Self.dead, of: ["b"])
        for replica in [one, two] { await replica.retired.settleAndFlush() }
        #expect(try await two.delete("a"))
        #expect(two.screen("a") == .clear)
        #expect(try await two.delete("b"))
        await two.retired.flush()
        #expect(try await store.entries().isEmpty)
        await one.retired.settle()
        for token in ["a", "b"] { #expect(one.screen(token) == .clear) }
        #expect(try await !one.delete("a"))
        #expect(try await !two.delete("b"))
        store.refuse()
        await #expect(throws: GatewayError.self) { try await one.delete("b") }
    }

    @Test("A token that one replica finds alive is cleared on all, even if another replica reported it")
    func alive() async throws {
        let (one, two, _) = try await Self.pair()
        one.learn(Self.dead, of: ["a"])
        for replica in [one, two] { await replica.retired.settle() }
        two.learn(Self.accepted, of: ["a"], isListed: two.screen("a") != .clear)
        for replica in [two, one] { await replica.retired.settle() }
        for replica in [one, two] { #expect(replica.screen("a") == .clear) }
        one.clock.advance(by: .seconds(3_900))
        await one.retired.settle()
        #expect(try await one.fed().isEmpty)
    }

    @Test("Replicas detect together a spike that neither would detect alone, and its end")
    func spike() async throws {
        let (one, two, store) = try await Self.pair()
        for (place, replica) in [one, two].enumerated() {
            replica.learn(Self.accepted, of: (0..<8).map { "alive \($0)" })
            replica.learn(Self.dead, of: (0..<8).map { "dead \(place) \($0)" })
        }
        #expect(one.screen("dead 0 1") == .refused([true]))
        await one.retired.settleAndFlush()
        #expect(one.screen("dead 0 1") == .refused([true]))
        for replica in [two, one] { await replica.retired.settleAndFlush() }
        for (place, replica) in [one, two].enumerated() { #expect(replica.screen("dead \(place) 1") == .listed) }
        #expect(try await store.entries().count == 16)
        #expect(try await store.entries().allSatisfy { $0.state == .suspected })

        one.clock.advance(by: .seconds(3_600))
        for replica in [one, two] {
            await replica.retired.settleAndFlush()
            replica.learn(Self.dead, of: ["again"])
            #expect(replica.screen("again") == .refused([true]))
            await replica.retired.flush()
        }
        one.clock.advance(by: .seconds(86_400))
        await one.retired.settleAndFlush()
        #expect(try await one.fed() == ["again"])
    }

    @Test("A token that dies again after its deletion is refused by all replicas and fed")
    func deadAgain() async throws {
        let (one, two, _) = try await Self.pair()
        one.learn(Self.dead, of: ["a"])
        for replica in [one, two] { await replica.retired.settle() }
        #expect(try await two.delete("a"))
        one.learn(Self.accepted, of: ["a"], isListed: true)
        one.learn(Self.dead, of: ["a"])
        for replica in [one, two] { await replica.retired.settle() }
        for replica in [one, two] { #expect(replica.screen("a") == .refused([true])) }
        one.clock.advance(by: .seconds(3_900))
        await two.retired.settle()
        #expect(try await two.fed() == ["a"])
    }

    @Test("A replica that returns sends again to a token that became suspected meanwhile")
    func suspectedMeanwhile() async throws {
        let (one, two, _) = try await Self.pair()
        two.learn(Self.dead, of: ["a"])
        for replica in [one, two] { await replica.retired.settle() }
        one.learn(Self.dead, of: (0..<30).map { "b\($0)" })
        for _ in 0..<2 { await one.retired.settle() }
        one.clock.advance(by: .seconds(86_000))
        #expect(two.screen("a") == .refused([true]))
        await two.retired.settle()
        #expect(two.screen("a") == .listed)
        #expect(try await two.fed().isEmpty)
    }

    @Test("While the store fails, counts don't pile up in the queue")
    func failing() async throws {
        let (one, _, store) = try await Self.pair()
        store.refuse()
        for _ in 0..<5 {
            one.learn(Self.accepted, of: ["a"])
            await one.retired.settle()
        }
        store.refuse(false)
        await one.retired.settleAndFlush()
        #expect(store.batches == [1])
    }

    @Test("Changes of a token reach the store in the order of its reports", .timeLimit(.minutes(10)))
    func order() async throws {
        let (one, _, store) = try await Self.pair()
        let tokens = ["a", "b", "c"]
        await withTaskGroup { group in
            for sender in 0..<8 {
                group.addTask {
                    var generator = SeededGenerator(seed: UInt64(sender))
                    for _ in 0..<2_000 {
                        let outcome = Bool.random(using: &generator) ? Self.dead : Self.accepted
                        let token = tokens[Int.random(in: 0..<tokens.count, using: &generator)]
                        one.learn(outcome, of: [token], isListed: true)
                    }
                }
            }
        }
        await one.retired.flush()
        for token in tokens {
            let key = one.profile.pseudonymizer.pseudonym(of: token).high
            let isListed = try await store.entries().contains { $0.key == key }
            #expect((one.screen(token) != .clear) == isListed, "\(token)")
        }
    }
}
