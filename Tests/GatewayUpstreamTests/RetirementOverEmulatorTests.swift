import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Logging
import NIOPosix
import ServiceLifecycle
import Testing

@testable import GatewayUpstream

@Suite("Retired tokens over the fake FCM", .timeLimit(.minutes(10)))
struct RetirementOverEmulatorTests {
    private static let audience = (0..<1_000).map { "device-\($0)" }

    /// A pipeline whose upstream is a fake FCM on the wire, with a clock that a test moves.
    private struct Fixture {
        let clock = ManualClock()
        let emulator: FCMEmulator
        let retired: RetiredTokens
        let pipeline: SendPipeline
        let principal: Principal

        func send(_ target: Target) async -> SendResult.Answer {
            await self.pipeline.send(.sample(from: self.principal, to: target)).result.answer
        }

        func fed() async throws -> [RetiredToken] {
            await self.retired.settleAndFlush()
            return try await self.retired.feed(of: self.principal.profile, after: nil, limit: 10_000).tokens
        }

        static func run(_ body: (Fixture) async throws -> Void) async throws {
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let emulator = FCMEmulator(configuration: EmulatorConfiguration(port: 0), logger: logger)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await emulator.run() }
                let endpoint = "http://127.0.0.1:\(try await emulator.boundPort())"
                try await FCMClient.run { sender in
                    try await body(try Fixture(emulator: emulator, endpoint: endpoint, sender: sender))
                }
                group.cancelAll()
            }
        }

        private init(emulator: FCMEmulator, endpoint: String, sender: FCMClient) throws {
            self.emulator = emulator
            self.retired = .sample(clock: self.clock)
            self.pipeline = SendPipeline(
                retired: self.retired,
                limiter: MemoryRateLimiter.withoutJitter(),
                upstream: sender,
                audit: .sample(store: TestDatabase().auditStore, clock: self.clock),
                clock: self.clock
            )
            self.principal = Principal(profile: try .sample(endpoint: endpoint), key: try .sample(of: .generate()))
        }
    }

    @Test("950 of 1,000 that end at once are held back; when they are good again nothing is left of it")
    func massDeath() async throws {
        try await Fixture.run { fixture async throws in
            for _ in 0..<3 { _ = await fixture.send(.tokens(Self.audience)) }
            fixture.emulator.unregister(Array(Self.audience.dropFirst(50)))
            guard case .recipients(let outcomes) = await fixture.send(.tokens(Self.audience)) else {
                Issue.record("no list")
                return
            }
            #expect(outcomes.count { $0 == .rejected(.unregistered) } == 950)
            await fixture.retired.settleAndFlush()
            fixture.clock.advance(by: .seconds(7_200))
            #expect(try await fixture.fed().isEmpty)
            let requests = fixture.emulator.journal().count
            _ = await fixture.send(.token("device-999"))
            #expect(fixture.emulator.journal().count == requests + 1)
            fixture.emulator.register(Self.audience)
            _ = await fixture.send(.tokens(Self.audience))
            fixture.clock.advance(by: .seconds(7_200))
            #expect(try await fixture.fed().isEmpty)
        }
    }

    @Test("5 % that end over an hour are fed, and a canonical registration with its token")
    func ordinaryDeath() async throws {
        try await Fixture.run { fixture in
            let dead = stride(from: 0, to: 1_000, by: 20).map { Self.audience[$0] }
            fixture.emulator.unregister(dead)
            for start in stride(from: 0, to: 1_000, by: 100) {
                _ = await fixture.send(.tokens(Array(Self.audience[start..<start + 100])))
                fixture.clock.advance(by: .seconds(360))
            }
            fixture.emulator.register(["device-1"], canonical: "device-new")
            _ = await fixture.send(.token("device-1"))
            await fixture.retired.settleAndFlush()
            fixture.clock.advance(by: .seconds(3_900))
            let fed = try await fixture.fed()
            #expect(Set(fed.filter { $0.state == .unregistered }.map(\.text)) == Set(dead))
            let replaced = fed.filter { $0.state == .replaced }
            #expect(replaced.map(\.text) == ["device-1"])
            #expect(replaced.map(\.replacement) == ["device-new"])
            let requests = fixture.emulator.journal().count
            for token in dead {
                #expect(await fixture.send(.token(token)) == .recipients([.rejected(.unregistered)]))
            }
            #expect(fixture.emulator.journal().count == requests)
        }
    }
}
