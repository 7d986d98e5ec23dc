import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayUpstream

struct RetryTests {
    private static let busy = WireAnswer.text("503 Service Unavailable", "")
    private static let accepted = SendResult.accepted("0:1")

    private static func call(
        _ endpoint: String?,
        of tenant: String = "acme",
        timeLeft: Duration = .seconds(60)
    ) throws -> UpstreamCall {
        try .sample(
            of: .sample(tenant),
            credential: LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: endpoint),
            timeLeft: timeLeft
        )
    }

    @Test("Up to two 503 responses are retried, after waits of at most one and two seconds", arguments: [1, 2])
    func moment(failures: Int) async throws {
        let waits = Observed<[Duration]>([])
        let script: @Sendable (Int) -> String = { $0 <= failures ? Self.busy : WireAnswer.accepted }
        try await RawServer.run(script: script) { upstream in
            try await FCMClient.run(pause: { wait in waits.change { $0.append(wait) } }) { sender async throws in
                #expect(try await sender.send(Self.call(upstream.endpoint)) == Self.accepted)
                #expect(upstream.seen.current.requests.count == failures + 1)
            }
        }
        #expect(waits.current.count == failures)
        for (wait, most) in zip(waits.current, [Duration.seconds(1), .seconds(2)]) {
            #expect(wait >= .zero && wait <= most)
        }
    }

    @Test("Jitter spreads retries over one second after the server's Retry-After")
    func spread() {
        let waits = [0, 0.25, 0.5, 1].map { Backoff.wait(after: 1, for: .trouble, retryAfter: 30, chance: $0) }
        #expect(waits == [.seconds(30), .milliseconds(30_250), .milliseconds(30_500), .seconds(31)])
    }

    @Test("A call that waits to retry, or is cancelled while it waits, uses none of the retry budget")
    func permit() async throws {
        let metrics = TestMetrics()
        let (waiting, isOver) = (Observed(0), Observed(false))
        let pause: @Sendable (Duration) async throws -> Void = { _ in
            waiting.change { $0 += 1 }
            try await isOver.wait { $0 }
        }
        try await FCMClient.run(against: .send(Self.busy), metrics: metrics, pause: pause) { sender, upstream in
            let call = try Self.call(upstream.endpoint)
            let calls = (0..<4).map { _ in Task { await sender.send(call) } }
            try await waiting.wait { $0 == 4 }
            let repeats = try metrics.expectCounter("fcmgw_retries_total", [("reason", "upstream_5xx")])
            #expect(repeats.totalValue == 0)
            for call in calls { call.cancel() }
            for call in calls { #expect(await call.value.refusal?.code == .upstreamUnavailable) }
            #expect(repeats.totalValue == 0)
            #expect(upstream.seen.current.requests.count == 4)
        }
    }

    @Test(
        "A retry waits for Retry-After, at least ten seconds, if the caller's deadline allows",
        arguments: [("3", 10), ("300", 300), ("450", 450)]
    )
    func retryAfter(field: String, seconds: Int) async throws {
        let waits = Observed<[Duration]>([])
        let busy = WireAnswer.text("503 Service Unavailable", "", "Retry-After: \(field)")
        try await RawServer.run(script: { $0 == 2 ? WireAnswer.accepted : busy }) { upstream in
            try await FCMClient.run(pause: { wait in waits.change { $0.append(wait) } }) { sender in
                let call = try Self.call(upstream.endpoint, timeLeft: .seconds(3_600))
                #expect(await sender.send(call) == Self.accepted)
                let wait = try #require(waits.current.first)
                #expect(waits.current.count == 1)
                #expect(wait >= .seconds(seconds) && wait <= .seconds(seconds + 1))
                // A caller with less time gets the delay instead.
                upstream.seen.change { $0.requests = [] }
                let hurried = await sender.send(try Self.call(upstream.endpoint, timeLeft: .seconds(9)))
                #expect(hurried.refusal?.code == .upstreamUnavailable)
                #expect(hurried.retryAfter == Int(field))
                #expect(upstream.seen.current.requests.count == 1)
            }
        }
    }

    @Test("Responses with status 429 don't open the breaker")
    func excess() async throws {
        try await FCMClient.run(against: .send(WireAnswer.text("429 Too Many Requests", ""))) { sender, upstream in
            for _ in 1...20 { _ = await sender.send(try Self.call(upstream.endpoint)) }
            #expect(upstream.seen.current.requests.count == 20)
        }
    }

    @Test("A request that was not sent is retried twice without a wait, and the retries are counted")
    func notSent() async throws {
        let metrics = TestMetrics()
        try await ClosedPort.with { port in
            try await FCMClient.run(metrics: metrics, pause: { _ in Issue.record("nothing to wait for") }) {
                sender in
                let result = await sender.send(try Self.call("http://127.0.0.1:\(port)"))
                #expect(result == .failed(.upstreamUnavailable, "connectFailed"))
            }
        }
        #expect(try metrics.expectCounter("fcmgw_retries_total", [("reason", "not_sent")]).totalValue == 2)
    }

    @Test("If every call fails, the breaker soon stops requests to that server; other tenants are unaffected")
    func storm() async throws {
        let metrics = TestMetrics()
        try await RawServer.run(.send(Self.busy)) { upstream in
            try await FCMClient.run(against: .send(WireAnswer.accepted), metrics: metrics) { sender, healthy in
                var refused = 0
                for _ in 1...200 {
                    let result = await sender.send(try Self.call(upstream.endpoint))
                    #expect(result.refusal?.code == .upstreamUnavailable)
                    if result.upstreamCode == "breaker_open" {
                        refused += 1
                        // The rest is 30 seconds at first, and longer after a failed probe.
                        #expect((1...300).contains(result.retryAfter ?? 0))
                    }
                    #expect(try await sender.send(Self.call(healthy.endpoint, of: "other")) == Self.accepted)
                }
                #expect(refused >= 195)
                #expect(upstream.seen.current.requests.count <= 8)
                #expect(healthy.seen.current.requests.count == 200)
            }
        }
        #expect(
            try metrics.expectMeter("fcmgw_breaker_state", [("api", "legacy"), ("project", "acme")]).lastValue == 2
        )
        let other = try metrics.expectMeter("fcmgw_breaker_state", [("api", "legacy"), ("project", "other")])
        #expect(other.lastValue == 0)
    }

    @Test("The breaker gauge shows open, half-open and closed")
    func gauge() throws {
        let metrics = TestMetrics()
        let health = UpstreamHealth(
            .v1,
            of: try .sample("acme"),
            metrics: UpstreamHealth.Metrics(GatewayMetrics(factory: metrics))
        )
        let meter = try metrics.expectMeter("fcmgw_breaker_state", [("api", "v1"), ("project", "acme")])
        let start = Uptime.now
        for _ in 1...5 { health.report(server: .trouble, credential: .silent, at: start) }
        #expect(meter.lastValue == 2)
        #expect(health.begin(at: start.advanced(by: .seconds(30))) == nil)
        #expect(meter.lastValue == 1)
        health.report(server: .healthy, credential: .healthy, at: start.advanced(by: .seconds(30)))
        #expect(meter.lastValue == 1)
        #expect(health.begin(at: start.advanced(by: .seconds(45))) == nil)
        #expect(meter.lastValue == 0)
    }

    @Test("Tenants without their own label share a gauge that shows the worst state of their breakers")
    func sharedGauge() throws {
        let metrics = TestMetrics()
        let resilience = UpstreamHealth.Metrics(GatewayMetrics(factory: metrics))
        for index in 0..<GatewayMetrics.TenantLabels.maxLabels {
            resilience.show(.closed, .legacy, of: try .sample("t\(index)"))
        }
        let tenants: [TenantID] = try ["late", "later", "other"].map { try .sample($0) }
        for tenant in tenants { resilience.show(.closed, .legacy, of: tenant) }
        let meter = try metrics.expectMeter("fcmgw_breaker_state", [("api", "legacy"), ("project", "other")])
        #expect(meter.lastValue == 0)
        for (index, condition, shown) in [
            (0, CircuitBreaker.Condition.halfOpen, 1.0), (1, .open, 2), (2, .closed, 2), (0, .closed, 2),
            (1, .halfOpen, 1),
            (2, .open, 2), (2, .halfOpen, 1), (1, .closed, 1), (2, .closed, 0),
        ] {
            resilience.show(condition, .legacy, of: tenants[index])
            #expect(meter.lastValue == shown)
        }
        // Each API has its own gauge, and so does a tenant with a label.
        resilience.show(.open, .v1, of: tenants[0])
        resilience.show(.open, .legacy, of: try .sample("t7"))
        #expect(meter.lastValue == 0)
        #expect(try metrics.expectMeter("fcmgw_breaker_state", [("api", "v1"), ("project", "other")]).lastValue == 2)
        #expect(try metrics.expectMeter("fcmgw_breaker_state", [("api", "legacy"), ("project", "t7")]).lastValue == 2)
    }

    @Test("After five refusals, a server key is not sent to FCM for a while")
    func refusedKey() async throws {
        let refusal = WireAnswer.text("401 Unauthorized", "")
        try await FCMClient.run(against: .send(refusal)) { sender, upstream in
            for _ in 1...20 {
                let result = await sender.send(try Self.call(upstream.endpoint))
                #expect(result.refusal?.code == .upstreamCredentials)
            }
            // One more if 30 seconds pass meanwhile.
            #expect((5...6).contains(upstream.seen.current.requests.count))
        }
    }
}
