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

/// The limiters that must pass the contract suite.
enum LimiterKind: String, CaseIterable, CustomTestStringConvertible {
    case memory
    case redis

    var testDescription: String { self.rawValue }

    /// Runs a body with a limiter whose buckets are full and whose clock the caller sets.
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

extension LimitKey {
    var digits: String {
        var digits: [UInt8] = []
        self.appendDigits(to: &digits)
        return String(decoding: digits, as: UTF8.self)
    }
}

extension RedisClient {
    /// Runs a body with a client of a local server, with long timeouts.
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

/// A monotonic clock that advances by `step` on each read, and on demand.
final class SteppedUptime: Sendable {
    private let state: Mutex<Uptime>
    private let step: Duration

    init(step: Duration = .zero) {
        self.state = Mutex(.now)
        self.step = step
    }

    func next() -> Uptime {
        self.state.withLock { now in
            now += self.step
            return now
        }
    }

    func advance(by duration: Duration) { self.state.withLock { $0 += duration } }
}

/// A Redis limiter whose script reads the time that the test sets.
///
/// The script reads the time from two keys. Keys expire an hour late because the server's own clock still runs.
/// No refusal is cached because each read of the uptime advances it by two seconds.
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
            uptime: SteppedUptime(step: .seconds(2)).next
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
