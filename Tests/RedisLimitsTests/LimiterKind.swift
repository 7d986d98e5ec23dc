import GatewayCore
import GatewayTestKit
import Logging
import NIOCore
import NIOPosix
import RedisClient
import RedisTestKit
import Synchronization
import Testing

@testable import RedisLimits

/// The limiters that pass one contract suite.
enum LimiterKind: String, CaseIterable, CustomTestStringConvertible {
    case memory
    case redis

    var testDescription: String { self.rawValue }

    /// Runs a body with a limiter whose quotas are whole, and whose time is what it is told.
    func with(_ body: (any RateLimiter) async throws -> Void) async throws {
        switch self {
        case .memory:
            try await body(MemoryRateLimiter.withoutJitter())
        case .redis:
            try await RedisServer.with { server in
                try await RedisClient.with(port: server.port) { client in
                    try await body(try TimedRedisLimiter(client))
                }
            }
        }
    }
}

extension RedisClient {
    /// Runs a body with a client of a server of this machine, whose commands may take long.
    static func with<Result>(
        port: Int,
        configure: (inout RedisClient.Configuration) -> Void = { _ in },
        _ body: (RedisClient) async throws -> Result
    ) async throws -> Result {
        var configuration = RedisClient.Configuration(location: try RedisLocation("redis://127.0.0.1:\(port)"))
        configuration.callTimeout = .seconds(60)
        configuration.connectTimeout = .seconds(60)
        configure(&configuration)
        let client = try RedisClient(
            configuration,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        do {
            let result = try await body(client)
            await client.shutdown()
            return result
        } catch {
            await client.shutdown()
            throw error
        }
    }
}

/// A monotonic clock that moves only when it is read, or when it is told to.
final class Uptime: Sendable {
    private let state: Mutex<ContinuousClock.Instant>
    private let step: Duration

    init(step: Duration = .zero) {
        self.state = Mutex(.now)
        self.step = step
    }

    func next() -> ContinuousClock.Instant {
        self.state.withLock { now in
            now += self.step
            return now
        }
    }

    func advance(by duration: Duration) { self.state.withLock { $0 += duration } }
}

/// The limiter over Redis with its program's clock in the hands of a test.
///
/// In place of its own time the program reads two keys. Keys expire an hour late, since the server's time passes
/// otherwise. No refusal is remembered, since its uptime moves by seconds each time that it is read.
final class TimedRedisLimiter: RateLimiter {
    private let client: RedisClient
    private let limiter: RedisRateLimiter

    init(_ client: RedisClient) throws {
        let text = LimiterScript.limits
            .replacing("redis.call('TIME')", with: "{redis.call('GET', 'time:s'), redis.call('GET', 'time:us')}")
            .replacing("local margin = 0", with: "local margin = 3600000")
        guard text.count > LimiterScript.limits.count + 40 else { throw SampleError(what: "a clock to hold") }
        self.client = client
        self.limiter = RedisRateLimiter(
            redis: client,
            probes: client,
            script: LimiterScript(text),
            whenRedisFails: .closed,
            replicas: { 1 },
            metrics: GatewayMetrics(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
            jitter: { $0.lowerBound },
            uptime: Uptime(step: .seconds(2)).next
        )
    }

    func admit(_ request: LimitRequest, now: Timestamp) async -> LimitDecision {
        await self.set(now)
        return await self.limiter.admit(request, now: now)
    }

    func status(of request: LimitRequest, now: Timestamp) async -> LimitStatus {
        await self.set(now)
        return await self.limiter.status(of: request, now: now)
    }

    func refusal(of tenant: LimitKey, _ policies: LimitPolicies, count: Int, now: Timestamp) -> LimitDecision? {
        self.limiter.refusal(of: tenant, policies, count: count, now: now)
    }

    private func set(_ time: Timestamp) async {
        let (seconds, microseconds) = time.microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        _ = try? await self.client.call(RedisCommand(["MSET", "time:s", "\(seconds)", "time:us", "\(microseconds)"]))
    }
}
