import FCMModel
import GatewayTestKit
import InMemoryLogging
import Logging
import Testing

@testable import GatewayCore

/// Replicas of one store, without I/O: each has what the other learns with its next poll.
struct SharedRetiredTokensTests {
    private struct Replica {
        let retired: RetiredTokens
        let profile: TenantProfile
        let clock: ManualClock

        init(
            _ store: InMemoryRetiredTokenStore,
            _ name: String,
            _ clock: ManualClock,
            logger: Logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        ) async throws {
            let profile = try TenantProfile.sample()
            (self.profile, self.clock) = (profile, clock)
            self.retired = .sample(
                store: store.replica(name),
                isShared: true,
                clock: clock,
                logger: logger,
                profiles: { [profile] }
            )
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

        func screen(_ token: String) -> RetiredTokenScreening {
            self.retired.screen(.token(token), self.pseudonyms([token]), of: self.profile, at: self.clock.now())
        }

        func delete(_ token: String) -> Bool {
            self.retired.delete(self.profile.pseudonymizer.pseudonym(of: token), of: self.profile)
        }

        /// As the service does it, in any order.
        func pollAndFlush() async {
            await self.retired.poll()
            await self.retired.flush()
        }
    }

    @Test("Of an outage of the store the first failure to write is logged, and its end")
    func loggedOutage() async throws {
        let (store, logs) = (InMemoryRetiredTokenStore(), InMemoryLogHandler())
        let replica = try await Replica(store, "one", ManualClock(), logger: Logger(label: "test") { _ in logs })
        replica.learn(.rejected(.unregistered), of: ["gone"])
        store.refuse()
        for _ in 0..<3 { await replica.retired.flush() }
        store.refuse(false)
        await replica.retired.flush()
        #expect(logs.entries.map(\.level) == [.error, .notice])
    }

    private static func pair() async throws -> (one: Replica, two: Replica, store: InMemoryRetiredTokenStore) {
        let (store, clock) = (InMemoryRetiredTokenStore(), ManualClock())
        return (try await Replica(store, "one", clock), try await Replica(store, "two", clock), store)
    }

    private static let accepted = RecipientOutcome.accepted(Acceptance(messageID: "m"))

    @Test("A token that is retired on one replica is refused on the other, and taken off there too")
    func learnt() async throws {
        let (one, two, _) = try await Self.pair()
        one.learn(.rejected(.unregistered), of: ["a"])
        await two.retired.poll()
        #expect(two.screen("a") == .clear)
        await one.retired.flush()
        await two.pollAndFlush()
        #expect(two.screen("a") == .refused([true]))

        #expect(two.delete("a"))
        #expect(two.screen("a") == .clear)
        await two.retired.flush()
        await one.pollAndFlush()
        #expect(one.screen("a") == .clear)
        #expect(!one.delete("a"))
    }

    @Test("One poll learns everything, however many pages it has")
    func pages() async throws {
        let (one, two, _) = try await Self.pair()
        let tokens = (0..<7).map { "token \($0)" }
        one.learn(.rejected(.unregistered), of: tokens)
        await one.retired.flush()
        await two.retired.poll()
        for token in tokens { #expect(two.screen(token) == .refused([true])) }
    }

    @Test("What a replica has changed itself is not undone by what it reads meanwhile")
    func ownChangesFirst() async throws {
        let (one, two, store) = try await Self.pair()
        one.learn(.rejected(.unregistered), of: ["a"])
        await one.retired.flush()
        await two.retired.poll()
        one.learn(.rejected(.unregistered), of: ["a"])
        #expect(one.delete("a"))
        // The store still has it.
        await one.retired.poll()
        #expect(one.screen("a") == .clear)
        store.refuse()
        await one.retired.flush()
        await one.retired.poll()
        #expect(one.screen("a") == .clear)
        store.refuse(false)
        await one.retired.flush()
        await one.retired.poll()
        await two.retired.poll()
        #expect(one.screen("a") == .clear)
        #expect(two.screen("a") == .clear)
        #expect(store.entries.isEmpty)
    }

    @Test("Two replicas that change one token agree in the end on what the store has", arguments: 1...40)
    func convergence(seed: Int) async throws {
        let (one, two, store) = try await Self.pair()
        var generator = SeededGenerator(seed: UInt64(seed))
        let names = ["a", "b", "c"]
        for _ in 0..<60 {
            let replica = Bool.random(using: &generator) ? one : two
            let name = names[Int.random(in: 0..<names.count, using: &generator)]
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: replica.learn(.rejected(.unregistered), of: [name])
            case 1: replica.learn(Self.accepted, of: [name], isListed: true)
            case 2: _ = replica.delete(name)
            case 3: await replica.retired.flush()
            case 4: await replica.retired.poll()
            case 5: one.clock.advance(by: .seconds(Int.random(in: 0...4_000, using: &generator)))
            default: replica.retired.settle()
            }
        }
        for _ in 0..<5 {
            for replica in [one, two] { await replica.pollAndFlush() }
        }
        for name in names {
            let key = one.profile.pseudonymizer.pseudonym(of: name).high
            let isStored = store.entries.contains { $0.key == key }
            #expect((one.screen(name) != .clear) == isStored, "\(name)")
            #expect(two.screen(name) == one.screen(name), "\(name)")
        }
        // Nothing is fed twice.
        let fed = store.entries.compactMap(\.position)
        #expect(Set(fed).count == fed.count)
    }

    @Test("Replicas notice together a spike that none of them would notice alone, and its end")
    func spike() async throws {
        let (one, two, store) = try await Self.pair()
        for replica in [one, two] { replica.learn(Self.accepted, of: (0..<5).map { "alive \($0)" }) }
        for (place, replica) in [one, two].enumerated() {
            replica.learn(.rejected(.unregistered), of: (0..<8).map { "dead \(place) \($0)" })
        }
        #expect(one.screen("dead 0 1") == .refused([true]))
        for _ in 0..<3 {
            for replica in [one, two] { await replica.pollAndFlush() }
        }
        for replica in [one, two] {
            #expect(replica.screen("dead 0 1") == .listed)
            #expect(replica.screen("dead 1 1") == .listed)
        }
        #expect(store.entries.allSatisfy { $0.token.state == .suspected })

        for _ in 0..<20 { one.learn(Self.accepted, of: (0..<50).map { "alive \($0)" }) }
        for _ in 0..<3 {
            for replica in [one, two] { await replica.pollAndFlush() }
        }
        for replica in [one, two] {
            replica.learn(.rejected(.unregistered), of: ["again"], isListed: true)
            #expect(replica.screen("again") == .refused([true]))
        }
    }

    @Test("A store that was restored is read anew, and what it lacks is forgotten")
    func restored() async throws {
        let (one, two, store) = try await Self.pair()
        one.learn(.rejected(.unregistered), of: ["a", "b"])
        await one.retired.flush()
        await two.retired.poll()
        let loads = store.loads
        _ = try await store.trim(reportedBefore: .sample, keeping: 1)
        store.restore(epoch: "second")
        await two.retired.poll()
        #expect(store.loads == loads + 1)
        #expect(["a", "b"].count { two.screen($0) == .refused([true]) } == 1)
        await two.retired.poll()
        #expect(store.loads == loads + 1)
    }

    @Test("Where the store fails nothing is lost, and what waits does not grow")
    func failing() async throws {
        let (one, two, store) = try await Self.pair()
        one.learn(.rejected(.unregistered), of: ["a"])
        await one.retired.flush()
        store.refuse()
        for _ in 0..<5 { await two.pollAndFlush() }
        #expect(two.screen("a") == .clear)
        store.refuse(false)
        await two.pollAndFlush()
        #expect(two.screen("a") == .refused([true]))
    }

    @Test("A tenant that the directory does not have yet is waited for")
    func unknownTenant() async throws {
        let (store, clock) = (InMemoryRetiredTokenStore(), ManualClock())
        let one = try await Replica(store, "one", clock)
        let profile = try TenantProfile.sample()
        let known = Observed(false)
        let retired = RetiredTokens.sample(
            store: store.replica("two"),
            isShared: true,
            clock: clock,
            profiles: { known.current ? [profile] : [] }
        )
        try await retired.load()
        one.learn(.rejected(.unregistered), of: ["a"])
        await one.retired.flush()
        await retired.poll()
        known.change { $0 = true }
        await retired.poll()
        let pseudonym = profile.pseudonymizer.pseudonym(of: "a")
        #expect(retired.screen(.token("a"), [pseudonym], of: profile, at: clock.now()) == .refused([true]))
    }
}
