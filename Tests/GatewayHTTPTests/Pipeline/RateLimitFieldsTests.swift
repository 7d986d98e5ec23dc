import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct RateLimitFieldsTests {
    @Test("Every send is answered with the remaining quota and the policy")
    func everySend() async throws {
        try await TestGateway.run { gateway, key in
            let first = await gateway.send(#"{"token":"a"}"#, key: key)
            #expect(first.header("RateLimit") == #""tenant";r=8999;t=1"#)
            #expect(first.header("RateLimit-Policy") == #""tenant";q=9000;w=1"#)
            let list = await gateway.send(#"{"tokens":["b","c","d"]}"#, key: key)
            #expect(list.header("RateLimit") == #""tenant";r=8996;t=1"#)
            let dryRun = await gateway.send(#"{"tokens":["b","c"],"dry_run":true}"#, key: key)
            #expect(dryRun.header("RateLimit") == #""tenant";r=8994;t=1"#)
            let topic = await gateway.send(#"{"topic":"news"}"#, key: key)
            #expect(topic.header("RateLimit") == #""tenant";r=8993;t=1"#)
        }
    }

    @Test("Several policies are listed, each by its own name")
    func severalPolicies() async throws {
        let short = try RatePolicy.sample(10, per: 1, burst: 20)
        let long = try RatePolicy.sample(60, per: 60, burst: 30)
        try await TestGateway.run(limits: LimitPolicies(tenant: [short, long])) { gateway, key in
            let answer = await gateway.send(#"{"token":"a"}"#, key: key)
            #expect(answer.header("RateLimit") == #""tenant";r=19;t=1, "tenant-2";r=29;t=1"#)
            #expect(answer.header("RateLimit-Policy") == #""tenant";q=10;w=1, "tenant-2";q=60;w=60"#)
        }
    }

    /// A limit of one message, and a message that counts against it.
    struct Limit: Sendable, CustomTestStringConvertible {
        var scope: LimitScope
        var body: String
        var code: String

        var testDescription: String { self.scope.rawValue }
    }

    @Test(
        "Over a limit the answer is 429 with the wait, and a send after the wait succeeds",
        arguments: [
            Limit(scope: .tenant, body: #"{"token":"a"}"#, code: "tenant_rate_exceeded"),
            Limit(scope: .device, body: #"{"token":"a"}"#, code: "device_rate_exceeded"),
            Limit(scope: .device, body: #"{"tokens":["a"]}"#, code: "device_rate_exceeded"),
            Limit(scope: .deviceCollapsible, body: #"{"token":"a","collapse_key":"k"}"#, code: "device_rate_exceeded"),
            Limit(scope: .topic, body: #"{"topic":"news"}"#, code: "topic_rate_exceeded"),
            Limit(
                scope: .topic,
                body: #"{"condition":"'sport' in topics || 'news' in topics"}"#,
                code: "topic_rate_exceeded"
            ),
        ]
    )
    func exceeded(limit: Limit) async throws {
        let policy = [try RatePolicy.sample(1, per: 7, burst: 1)]
        let limits =
            switch limit.scope {
            case .tenant: LimitPolicies(tenant: policy)
            case .device: LimitPolicies(device: policy)
            case .deviceCollapsible: LimitPolicies(deviceCollapsible: policy)
            case .topic: LimitPolicies(topic: policy)
            }
        try await TestGateway.run(limits: limits) { gateway, key in
            #expect(await gateway.send(limit.body, key: key).status == 200)
            let answer = await gateway.send(limit.body, key: key)
            #expect(answer.status == 429)
            #expect(answer.header("Retry-After") == "7")
            let isTenants = limit.scope == .tenant
            #expect(answer.header("RateLimit")?.hasPrefix(#""tenant";r=\#(isTenants ? "0;t=7" : "")"#) == true)
            #expect(answer.header("RateLimit-Policy")?.hasPrefix(#""tenant";q=\#(isTenants ? "1;w=7" : "")"#) == true)
            let problem = try answer.problem()
            #expect(problem["id"]?.text?.isUUIDv7 == true)
            #expect(
                problem.without("id", "detail", "title") == [
                    "type": .string("/problems/\(limit.code)"), "status": 429, "code": .string(limit.code),
                    "retryable": true, "action": "wait", "retry_after": 7, "limited_by": "gateway",
                    "violated_policies": [.string(limit.scope.rawValue)],
                ]
            )
            #expect(gateway.upstream.calls.count == 1)
            gateway.clock.advance(by: .seconds(7))
            #expect(await gateway.send(limit.body, key: key).status == 200)
        }
    }
}
