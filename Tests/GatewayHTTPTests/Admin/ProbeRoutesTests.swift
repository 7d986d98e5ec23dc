import GatewayCore
import GatewayTestKit
import HTTPTypes
import Logging
import Testing

@testable import GatewayHTTP

struct ProbeRoutesTests {
    @Test("The liveness probe always passes; the readiness probe passes only while the gateway is ready")
    func health() async throws {
        try await TestGateway.run { gateway, _ in
            func check(_ path: String, _ status: Int, _ json: JSON) async throws {
                let answer = await gateway.admin(.get, path, token: nil)
                #expect(answer.status == status)
                #expect(answer.header("Content-Type") == "application/health+json")
                #expect(answer.header("Cache-Control") == "no-store")
                #expect(try answer.json == json)
            }
            try await check("/livez", 200, ["status": "pass"])
            try await check("/readyz", 503, ["status": "fail", "output": "The gateway starts or drains"])
            gateway.readiness.set(true)
            try await check("/readyz", 200, ["status": "pass"])
            gateway.readiness.set(false)
            try await check("/readyz", 503, ["status": "fail", "output": "The gateway starts or drains"])
            try await check("/livez", 200, ["status": "pass"])
        }
    }

    @Test("While the gateway waits for its store, probes are answered and other admin requests get 503")
    func starting() async throws {
        try await TestGateway.run { gateway, _ in
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let starting = Listener.starting(
                hosts: AllowedHosts([TestGateway.host]),
                exposition: MetricsExposition(contentType: "text/plain") { Array("fcmgw_up 1\n".utf8) },
                clock: gateway.clock,
                metrics: HTTPMetrics(GatewayMetrics(), listener: "admin"),
                accessLog: AccessLog(logger: logger),
                tracer: RequestTracer(),
                logger: logger
            )
            let responder = AdminResponder(starting)
            func ask(_ path: String) async -> Answer {
                await TestGateway.ask(responder, .get, path, bearer: TestGateway.adminToken)
            }
            #expect(await ask("/livez").status == 200)
            #expect(await ask("/metrics").body == "fcmgw_up 1\n")
            let readiness = await ask("/readyz")
            #expect(readiness.status == 503)
            #expect(try readiness.json == ["status": "fail", "output": "The gateway starts: it waits for its store"])
            let early = await ask("/admin/v1/tenants")
            try early.expectProblem(503, "overloaded")
            #expect(early.header("Retry-After") == "5")

            responder.open(gateway.adminListener)
            #expect(await ask("/admin/v1/tenants").status == 200)
            #expect(try await ask("/readyz").json == ["status": "fail", "output": "The gateway starts or drains"])
        }
    }

    @Test(
        "The admin listener accepts only known host names and IP addresses",
        arguments: [
            ("gateway.test", true), ("GATEWAY.test:8081", true), ("localhost", true), ("localhost:1", true),
            ("127.0.0.1:8081", true), ("10.1.2.3", true), ("[::1]:8081", true), ("[fe80::1]", true), ("", true),
            (nil, true), ("evil.example:8081", false), ("gateway.test.evil.example", false), ("agateway.test", false),
            ("127.0.0.1.evil.example", false), ("[evil]:80", false), ("localhost.evil.example", false),
        ] as [(String?, Bool)]
    )
    func hosts(host: String?, isKnown: Bool) async throws {
        try await TestGateway.run { gateway, _ in
            for path in ["/livez", "/metrics", "/openapi.yaml", "/admin/v1/tenants", "/nowhere"] {
                let answer = await gateway.admin(.get, path, host: host)
                guard !isKnown else {
                    #expect(answer.status == (path == "/nowhere" ? 404 : 200), "\(path)")
                    continue
                }
                try answer.expectProblem(421, "bad_request", "\(path)")
                #expect(answer.header("X-Request-ID")?.isUUIDv7 == true)
            }
        }
    }

    @Test("Metrics are served as rendered, without a token and with their own media type")
    func metrics() async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(.get, "/metrics", token: nil)
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            #expect(answer.body == "fcmgw_up 1\n")
        }
    }
}
