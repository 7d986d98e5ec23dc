import Foundation
import GatewayCore
import GatewayTestKit
import Logging
import MetricsTestKit
import NIOCore
import NIOPosix
import ProcessTestKit
import RedisClient
import RedisTestKit
import Testing

@testable import RedisLimits

/// The Redis limiter's own properties: its failures, and the keys that it leaves in the server.
@Suite("RedisRateLimiter", .timeLimit(.minutes(4)))
struct RedisRateLimiterTests {
    private static let daily = [RatePolicy(rate: 1, periodSeconds: 86_400, burst: 4)].compactMap { $0 }

    private static func request(_ recipients: LimitRequest.Recipients = .tenantOnly(1)) -> LimitRequest {
        LimitRequest(
            policies: LimitPolicies(tenant: Self.daily, device: Self.daily, deviceCollapsible: [], topic: []),
            recipients: recipients
        )
    }

    private static func limiter(
        _ client: RedisClient,
        _ fallback: RedisRateLimiter.Fallback = .local,
        replicas: Int = 1,
        metrics: GatewayMetrics = GatewayMetrics(),
        script: LimiterScript = LimiterScript(),
        probes: RedisClient? = nil,
        uptime: SteppedUptime = SteppedUptime(step: .seconds(2))
    ) -> RedisRateLimiter {
        RedisRateLimiter(
            redis: client,
            probes: probes ?? client,
            script: script,
            whenRedisFails: fallback,
            replicas: { replicas },
            metrics: metrics,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
            jitter: { $0.lowerBound },
            uptime: uptime.next
        )
    }

    /// The number of runs of a command since the last `CONFIG RESETSTAT`.
    private static func calls(_ command: String, _ client: RedisClient) async throws -> Int {
        guard case .bytes(let bytes) = try await client.call(RedisCommand(["INFO", "commandstats"])) else { return -1 }
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        let prefix = "cmdstat_\(command):calls="
        guard let line = lines.first(where: { $0.hasPrefix(prefix) }) else { return 0 }
        return Int(line.dropFirst(prefix.count).prefix(while: \.isNumber)) ?? -1
    }

    @Test("After the tenant's bucket refuses, a list reads no other key and sends no further chunk")
    func tenantFirst() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client in
                let limiter = Self.limiter(client)
                for _ in 0..<4 { _ = await limiter.admit(Self.request(), now: .sample) }
                _ = try await client.call(RedisCommand(["CONFIG", "RESETSTAT"]))
                let list = Self.request(.devices((0..<1_000).map { .sample("device \($0)") }))
                #expect(await limiter.admit(list, now: .sample).admitted(of: 1_000) == 0)
                #expect(try await Self.calls("evalsha", client) == 1)
                #expect(try await Self.calls("get", client) == 1)
            }
        }
    }

    @Test("A tenant without quota is refused from memory for one second, then Redis is asked again")
    func rememberedTenant() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client in
                let uptime = SteppedUptime()
                let limiter = Self.limiter(client, uptime: uptime)
                let request = Self.request()
                func refusal() -> LimitDecision? {
                    limiter.refusal(of: request.tenant, request.policies, count: 1, now: .sample)
                }
                for _ in 0..<4 {
                    #expect(refusal() == nil)
                    #expect(await limiter.admit(request, now: .sample).admission == .all)
                }
                #expect(refusal() != nil)
                _ = try await client.call(RedisCommand(["CONFIG", "RESETSTAT"]))
                let list = Self.request(.devices((0..<1_000).map { .sample("device \($0)") }))
                for _ in 0..<3 {
                    #expect(await limiter.admit(list, now: .sample).admitted(of: 1_000) == 0)
                    #expect(refusal()?.tenantQuotas.map(\.remaining) == [0])
                }
                #expect(try await Self.calls("evalsha", client) == 0)
                uptime.advance(by: RefusalCache.longest)
                #expect(refusal() == nil)
                #expect(await limiter.admit(request, now: .sample).admitted(of: 1) == 0)
                #expect(try await Self.calls("evalsha", client) == 1)
            }
        }
    }

    @Test("A status request caches a tenant's refusal and rewrites a value too far in the future")
    func look() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client in
                let limiter = Self.limiter(client, uptime: SteppedUptime())
                let request = Self.request()
                let tenant = request.tenant.digits
                let own = request.policies.bucketKey(request.tenant, .tenant).digits
                let key = "rl:{\(tenant)}:t:\(own)"
                // In the year 2255, as microseconds and nanoseconds.
                let late = [UInt8]([0x00, 0x20, 0, 0, 0, 0, 0, 0, 0, 0])
                _ = try await client.call(RedisCommand([Array("SET".utf8), Array(key.utf8), late]))
                #expect(await limiter.status(of: request, now: .sample).tenant.map(\.remaining) == [0])
                #expect(try await client.call(RedisCommand(["GET", key])) != .bytes(late))
                #expect(limiter.refusal(of: request.tenant, request.policies, count: 1, now: .sample) != nil)
            }
        }
    }

    @Test("Redis is not asked about a device with a cached refusal until its policy changes")
    func rememberedDevice() async throws {
        let ample = [RatePolicy(rate: 1, periodSeconds: 1, burst: 10_000)].compactMap { $0 }
        let once = [RatePolicy(rate: 1, periodSeconds: 86_400, burst: 1)].compactMap { $0 }
        let policies = LimitPolicies(tenant: ample, device: once, deviceCollapsible: once, topic: [])
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client in
                let limiter = Self.limiter(client, uptime: SteppedUptime())
                func admit(_ names: String..., policies: LimitPolicies) async -> LimitDecision {
                    let keys = names.map { LimitKey.sample($0) }
                    let request = LimitRequest(policies: policies, recipients: .devices(keys))
                    return await limiter.admit(request, now: .sample)
                }
                for admitted in [1, 0] { #expect(await admit("a", policies: policies).admitted(of: 1) == admitted) }
                _ = try await client.call(RedisCommand(["CONFIG", "RESETSTAT"]))
                let alone = await admit("a", policies: policies)
                #expect(alone.admission == .none(LimitDecision.Denial(scope: .device, retryAfter: 86_400)))
                #expect(alone.tenantQuotas.map(\.remaining) == [9_999])
                #expect(try await Self.calls("evalsha", client) == 0)
                let denial = LimitDecision.Denial(scope: .device, retryAfter: 86_400)
                #expect(await admit("b", "a", "c", policies: policies).admission == .some([nil, denial, nil]))
                // The keys of the tenant and of the two devices without a cached refusal.
                #expect(try await Self.calls("get", client) == 3)
                let changed = LimitPolicies(tenant: ample, device: ample, deviceCollapsible: once, topic: [])
                #expect(await admit("a", policies: changed).admission == .all)
            }
        }
    }

    @Test("Failed decisions end the sharing of limits only if a probe fails too")
    func doubt() async throws {
        try await ClosedPort.with { port in
            try await RedisServer.with { server in
                try await RedisClient.with(port: server.port) { probes in
                    try await RedisClient.with(port: port) { client async throws in
                        let factory = TestMetrics()
                        let metrics = GatewayMetrics(factory: factory)
                        let limiter = Self.limiter(client, .closed, metrics: metrics, probes: probes)
                        for _ in 0..<8 { _ = await limiter.admit(Self.request(), now: .sample) }
                        #expect(try factory.expectMeter("fcmgw_limiter_fallback_active").lastValue == 0)
                        _ = try await probes.call(RedisCommand(["CONFIG", "SET", "maxmemory", "1"]))
                        for _ in 0..<3 { _ = await limiter.admit(Self.request(), now: .sample) }
                        #expect(try factory.expectMeter("fcmgw_limiter_fallback_active").lastValue == 1)
                    }
                }
            }
        }
    }

    @Test("A script error refuses its request, and limits stay shared")
    func oneRequestsError() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client async throws in
                let factory = TestMetrics()
                let program = "if #KEYS > 3 then return redis.error_reply('ERR too many') end\n" + LimiterScript.limits
                let limiter = Self.limiter(
                    client,
                    .closed,
                    metrics: GatewayMetrics(factory: factory),
                    script: LimiterScript(program)
                )
                let large = Self.request(.devices((0..<9).map { .sample("device \($0)") }))
                for _ in 0..<9 { #expect(await limiter.admit(large, now: .sample).admitted(of: 9) == 0) }
                #expect(try factory.expectMeter("fcmgw_limiter_fallback_active").lastValue == 0)
                #expect(await limiter.admit(Self.request(), now: .sample).tenantQuotas.map(\.remaining) == [3])
            }
        }
    }

    @Test("Two replicas with different clocks share one quota by the server's time")
    func shared() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { first in
                try await RedisClient.with(port: server.port) { second in
                    let limiters = [Self.limiter(first), Self.limiter(second)]
                    let late = Timestamp(microseconds: Timestamp.sample.microseconds + 3_600_000_000)
                    var admitted = 0
                    for index in 0..<12 {
                        let now = index.isMultiple(of: 2) ? Timestamp.sample : late
                        admitted += await limiters[index % 2].admit(Self.request(), now: now).admitted(of: 1)
                    }
                    #expect(admitted == 4)
                }
            }
        }
    }

    @Test("Keys have the tenant's hash tag, contain only digests, and expire by the time their bucket is full")
    func keys() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client in
                let key = LimitKey.sample("device")
                let request = Self.request(.devices([key]))
                #expect(await Self.limiter(client).admit(request, now: .sample).admission == .all)
                let tenant = request.tenant.digits
                func digits(_ scope: LimitScope, _ key: LimitKey) -> String {
                    request.policies.bucketKey(key, scope).digits
                }
                let (own, device) = (digits(.tenant, request.tenant), digits(.device, key))
                for name in ["rl:{\(tenant)}:t:\(own)", "rl:{\(tenant)}:d:\(device)"] {
                    guard case .integer(let life) = try await client.call(RedisCommand(["PTTL", name])) else {
                        Issue.record("\(name) has no end")
                        continue
                    }
                    #expect((1...86_400_000).contains(life))
                }
                #expect(try await client.call(RedisCommand(["DBSIZE"])) == .integer(2))
            }
        }
    }

    @Test("A foreign stored value counts as a full bucket", arguments: ["5 1000", String(repeating: "x", count: 41)])
    func foreignValue(value: String) async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client async throws in
                let request = Self.request()
                let tenant = request.tenant.digits
                let own = request.policies.bucketKey(request.tenant, .tenant).digits
                _ = try await client.call(RedisCommand(["SET", "rl:{\(tenant)}:t:\(own)", value]))
                let limiter = Self.limiter(client, .closed)
                for left in [3, 2] {
                    #expect(await limiter.admit(Self.request(), now: .sample).tenantQuotas.map(\.remaining) == [left])
                }
            }
        }
    }

    @Test("A refusal writes nothing")
    func refusal() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client async throws in
                let limiter = Self.limiter(client)
                for _ in 0..<4 { _ = await limiter.admit(Self.request(), now: .sample) }
                let refused = Self.request(.devices([.sample("new")]))
                #expect(await limiter.admit(refused, now: .sample).admitted(of: 1) == 0)
                #expect(try await client.call(RedisCommand(["DBSIZE"])) == .integer(1))
            }
        }
    }

    @Test("The script is loaded again after SCRIPT FLUSH, and quotas stay exact")
    func flushedScripts() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client in
                let limiter = Self.limiter(client)
                for left in [3, 2, 1] {
                    _ = try await client.call(RedisCommand(["SCRIPT", "FLUSH"]))
                    #expect(await limiter.admit(Self.request(), now: .sample).tenantQuotas.map(\.remaining) == [left])
                }
            }
        }
    }

    @Test(
        "A malformed script result counts as a failure",
        arguments: [
            "return 1", "return {}", "return 'seven b'", "return struct.pack('>i8i8', 1, 1)",
            "return string.rep('\\127', 24)", "return struct.pack('>i8i8i8i8', 1, 1, 1, 1)",
        ]
    )
    func answers(program: String) async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client in
                let limiter = Self.limiter(client, .closed, script: LimiterScript(program))
                #expect(await limiter.admit(Self.request(), now: .sample).admitted(of: 1) == 0)
            }
        }
    }

    @Test(
        "Without Redis the fallback admits the replica's share, everything or nothing",
        arguments: [(.local, 2), (.open, 8), (.closed, 0)] as [(RedisRateLimiter.Fallback, Int)]
    )
    func withoutRedis(fallback: RedisRateLimiter.Fallback, admitted: Int) async throws {
        try await ClosedPort.with { port in
            try await RedisClient.with(port: port) { client in
                let factory = TestMetrics()
                let limiter = Self.limiter(
                    client,
                    fallback,
                    replicas: 2,
                    metrics: GatewayMetrics(factory: factory)
                )
                let gauge = try factory.expectMeter("fcmgw_limiter_fallback_active")
                #expect(gauge.lastValue == 0)
                var count = 0
                for _ in 0..<8 {
                    count += await limiter.admit(Self.request(), now: .sample).admitted(of: 1)
                }
                #expect(count == admitted)
                #expect(gauge.lastValue == 1)
                #expect(await !limiter.probe())
            }
        }
    }

    @Test("A server that refuses writes counts as failed; sharing resumes after enough answered probes")
    func readOnly() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { client in
                let limiter = Self.limiter(client, .closed)
                #expect(await limiter.admit(Self.request(), now: .sample).admission == .all)
                _ = try await client.call(RedisCommand(["CONFIG", "SET", "maxmemory", "1"]))
                for _ in 0..<4 {
                    #expect(await limiter.admit(Self.request(), now: .sample).admitted(of: 1) == 0)
                }
                #expect(await !limiter.probe())
                _ = try await client.call(RedisCommand(["CONFIG", "SET", "maxmemory", "0"]))
                for _ in 0..<LimiterHealth.goodProbes {
                    #expect(await limiter.admit(Self.request(), now: .sample).admitted(of: 1) == 0)
                    #expect(await limiter.probe())
                }
                #expect(await limiter.admit(Self.request(), now: .sample).tenantQuotas.map(\.remaining) == [2])
            }
        }
    }

    @Test("Decisions are refused while the server hangs, and probes succeed after it resumes")
    func hanging() async throws {
        try await RedisServer.with { server in
            try await RedisClient.with(port: server.port) { steady in
                try await RedisClient.with(port: server.port, configure: { $0.callTimeout = .milliseconds(25) }) {
                    client in
                    let limiter = Self.limiter(client, .closed)
                    // Wait for the connection.
                    while await !limiter.probe() { await Task.yield() }
                    server.process.signal(SIGSTOP)
                    for _ in 0..<8 {
                        #expect(await limiter.admit(Self.request(), now: .sample).admitted(of: 1) == 0)
                    }
                    server.process.signal(SIGCONT)
                    _ = try await steady.call(RedisCommand(["PING"]))
                    while await !limiter.probe() { await Task.yield() }
                    // Commands sent before the hang may have been charged when the server resumed.
                    _ = try await steady.call(RedisCommand(["FLUSHDB"]))
                    let left = await Self.limiter(steady).status(of: Self.request(), now: .sample)
                    #expect(left.tenant.map(\.remaining) == [4])
                }
            }
        }
    }

    @Test("A cluster node and a wrong password are refused at start with the matching error code")
    func refusedAtStart() async throws {
        try await RedisServer.with(.server, ["--cluster-enabled", "yes"]) { server in
            try await RedisClient.with(port: server.port) { client in
                let error = await #expect(throws: RedisClientError.self) {
                    try await Self.limiter(client).verify(timeout: .seconds(60))
                }
                #expect(error?.code == .clusterNode)
            }
        }
        try await RedisServer.with(.server, ["--requirepass", "secret"]) { server in
            try await RedisClient.with(port: server.port, configure: { $0.password = "wrong" }) { client in
                let error = await #expect(throws: RedisClientError.self) {
                    try await Self.limiter(client).verify(timeout: .seconds(60))
                }
                #expect(error?.code == .authenticationFailed)
            }
        }
    }
}
