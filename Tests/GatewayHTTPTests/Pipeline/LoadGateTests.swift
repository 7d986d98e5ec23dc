import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import InMemoryLogging
import Logging
import MetricsTestKit
import Testing

@testable import GatewayHTTP

@Suite("LoadGate", .timeLimit(.minutes(10)))
struct LoadGateTests {
    /// Admits requests of other tenants, one for each tenant.
    private static func fill(_ gateway: TestGateway, _ count: Int) throws -> [Principal] {
        try (0..<count)
            .map { number in
                let principal = try Principal.sample(tenant: "filler-\(number)")
                #expect(
                    gateway.gate.enter(principal, .message(recipients: 1, calls: 1, isUrgent: true), lag: .zero) == nil
                )
                return principal
            }
    }

    private static func shed(_ gateway: TestGateway, _ reason: LoadShedder.Reason) throws -> Int64 {
        try gateway.metrics.expectCounter("fcmgw_shed_total", [("reason", reason.rawValue)]).totalValue
    }

    /// Checks that an answer is a dialect's refusal under load.
    private static func check(
        _ answer: Answer,
        in dialect: Dialect,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(answer.status == 503, sourceLocation: sourceLocation)
        let delay = try #require(answer.header("Retry-After").flatMap { Int($0) }, sourceLocation: sourceLocation)
        #expect((1...3).contains(delay), sourceLocation: sourceLocation)
        switch dialect {
        case .rest, .console:
            let problem = try answer.problem(sourceLocation: sourceLocation)
            #expect(problem["code"]?.text == "overloaded", sourceLocation: sourceLocation)
            #expect(problem["retryable"] == .bool(true), sourceLocation: sourceLocation)
            #expect(problem["action"]?.text == "wait", sourceLocation: sourceLocation)
        case .legacy:
            #expect(answer.header("Content-Type") == "text/plain; charset=UTF-8", sourceLocation: sourceLocation)
            #expect(answer.body == "Service Unavailable", sourceLocation: sourceLocation)
        case .v1:
            let error = answer.value["error"]
            #expect(error?["code"]?.int == 503, sourceLocation: sourceLocation)
            #expect(error?["status"]?.text == "UNAVAILABLE", sourceLocation: sourceLocation)
        case .groups:
            #expect(answer.value["error"]?.text == "Unavailable", sourceLocation: sourceLocation)
        case .instanceID:
            #expect(answer.value["error"]?.text != nil, sourceLocation: sourceLocation)
        }
    }

    @Test(
        "At the in-flight limit every route refuses in its own format, and serves again afterwards",
        arguments: Surface.all
    )
    func inFlight(surface: Surface) async throws {
        try await TestGateway.run(maxInFlight: 10) { gateway, key in
            try await gateway.setSender()
            let others = try Self.fill(gateway, 10)
            try Self.check(await surface.ask(gateway, key: key), in: surface.dialect)
            #expect(try Self.shed(gateway, .inFlight) == 1)
            #expect(gateway.upstream.calls.isEmpty && gateway.topics.changes.isEmpty)
            others.forEach { gateway.gate.leave($0) }
            #expect((200...201).contains(await surface.ask(gateway, key: key).status))
            #expect(gateway.gate.inFlight == 0)
        }
    }

    @Test("Every route refuses while the event loop lags", arguments: Surface.all)
    func lag(surface: Surface) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setSender()
            // With few requests in flight, lag does not matter.
            #expect((200...201).contains(await surface.ask(gateway, key: key, lag: .seconds(1)).status))
            _ = try Self.fill(gateway, 64)
            try Self.check(await surface.ask(gateway, key: key, lag: .milliseconds(6)), in: surface.dialect)
            try Self.check(await surface.ask(gateway, key: key, lag: .microseconds(4_500)), in: surface.dialect)
            #expect(try Self.shed(gateway, .lag) == 2)
            #expect(gateway.gate.inFlight == 64)
        }
    }

    @Test(
        "The last fifth of the places is reserved for messages of high priority on every send surface",
        arguments: Surface.sending
    )
    func reserve(surface: Surface) async throws {
        try await TestGateway.run(maxInFlight: 10) { gateway, key in
            _ = try Self.fill(gateway, 7)
            #expect(await surface.ask(gateway, key: key).status == 200)
            _ = try Self.fill(gateway, 1)
            try Self.check(await surface.ask(gateway, key: key), in: surface.dialect)
            #expect(try Self.shed(gateway, .reserve) == 1)
            #expect(await surface.ask(gateway, key: key, body: surface.urgentBody).status == 200)
            #expect(
                await surface.ask(gateway, key: key, body: surface.urgentBody, lag: .microseconds(4_500)).status == 200
            )
            #expect(gateway.gate.inFlight == 8)
        }
    }

    @Test("Routes other than sends can't use the last fifth of the places", arguments: Surface.others)
    func reserveOfOthers(surface: Surface) async throws {
        try await TestGateway.run(maxInFlight: 10) { gateway, key in
            try await gateway.setSender()
            _ = try Self.fill(gateway, 8)
            try Self.check(await surface.ask(gateway, key: key), in: surface.dialect)
            #expect(try Self.shed(gateway, .reserve) == 1)
        }
    }

    @Test(
        "The apns-priority header sets a message's priority",
        arguments: [
            (#"{"headers":{"apns-priority":"10"}}"#, 200), (#"{"headers":{"apns-priority":"5"}}"#, 503),
            (#"{}"#, 503),
        ]
    )
    func apnsPriority(apns: String, status: Int) async throws {
        try await TestGateway.run(maxInFlight: 10) { gateway, key in
            try await gateway.setUpstream(.v1, project: nil)
            _ = try Self.fill(gateway, 8)
            let body = #"{"message":{"token":"d","apns":\#(apns)}}"#
            #expect(await gateway.v1(body, key: key, project: "demo").status == status)
        }
    }

    @Test(
        "A tenant that holds half of the places is refused on every route, and other tenants are served",
        arguments: Surface.all
    )
    func tenantShare(surface: Surface) async throws {
        let isOpen = Observed(false)
        let hold: @Sendable () async -> Void = { try? await isOpen.wait { $0 } }
        let groups = ScriptedGroupUpstream(hold: hold)
        try await TestGateway.run(groupUpstream: groups, maxInFlight: 10, hold: hold) { gateway, key in
            try await gateway.setSender()
            let other = try await gateway.makeKey(scopes: Set(Scope.allCases), tenant: "other")
            await withTaskGroup(of: Int.self) { group in
                for number in 0..<5 {
                    group.addTask { await gateway.send(#"{"token":"d\#(number)"}"#, key: key).status }
                }
                while gateway.gate.inFlight < 5 { await Task.yield() }
                do {
                    try Self.check(await surface.ask(gateway, key: key), in: surface.dialect)
                    #expect(try Self.shed(gateway, .tenantShare) == 1)
                } catch {
                    Issue.record(error)
                }
                // A directory change replaces the tenant's profile but keeps its count.
                do {
                    _ = try await gateway.makeKey(scopes: [.sendMessages])
                    try Self.check(await surface.ask(gateway, key: key), in: surface.dialect)
                } catch {
                    Issue.record(error)
                }
                group.addTask {
                    await gateway.data(.post, "/v1/tenants/other/messages", key: other, body: #"{"token":"o"}"#).status
                }
                while gateway.gate.inFlight < 6 { await Task.yield() }
                isOpen.change { $0 = true }
                for await status in group { #expect(status == 200) }
            }
            #expect(gateway.gate.inFlight == 0)
            #expect((200...201).contains(await surface.ask(gateway, key: key).status))
        }
    }

    /// Requests that become many calls over HTTP v1.
    private static let fannedOut: [(path: String, body: String)] = [
        ("/v1/tenants/demo/messages", #"{"tokens":["a","b","c","d","e","f"],"data":{"k":"v"}}"#),
        ("/v1/tenants/demo/topics/news/subscriptions", #"{"tokens":["a","b","c","d","e","f"]}"#),
    ]

    @Test("A list counts as the number of its calls in flight", arguments: Self.fannedOut, [UpstreamKind.legacy, .v1])
    func lists(list: (path: String, body: String), upstream: UpstreamKind) async throws {
        let isOpen = Observed(false)
        try await TestGateway.run(maxInFlight: 12, hold: { try? await isOpen.wait { $0 } }) { gateway, _ in
            try await gateway.setUpstream(upstream, project: "demo")
            let key = try await gateway.makeKey(scopes: Set(Scope.allCases))
            let weight = upstream == .v1 ? 4 : 1
            let fitting = upstream == .v1 ? 2 : 6
            await withTaskGroup(of: Int.self) { group in
                for number in 1...fitting {
                    group.addTask { await gateway.data(.post, list.path, key: key, body: list.body).status }
                    while gateway.gate.inFlight < number * weight { await Task.yield() }
                }
                #expect(await gateway.data(.post, list.path, key: key, body: list.body).status == 503)
                #expect(gateway.gate.inFlight == fitting * weight)
                isOpen.change { $0 = true }
                for await status in group { #expect(status == 200) }
            }
            #expect(gateway.gate.inFlight == 0)
        }
    }

    @Test("A request gives its place back after success, refusal and cancellation", arguments: Surface.all)
    func places(surface: Surface) async throws {
        let started = Observed(0)
        let isHeld = Observed(false)
        let hold: @Sendable () async -> Void = {
            started.change { $0 += 1 }
            // Waits until the caller's task is cancelled.
            if isHeld.current { try? await isHeld.wait { !$0 } }
        }
        let groups = ScriptedGroupUpstream(hold: hold)
        try await TestGateway.run(groupUpstream: groups, hold: hold) { gateway, key in
            try await gateway.setSender()
            let powerless = try await gateway.makeKey(scopes: [])
            let bodies = [surface.body, "", "{", "[]", #"{"unknown":1}"#, #"{"token":"d","priority":7}"#]
            for body in bodies {
                _ = await surface.ask(gateway, key: key, body: body)
                _ = await surface.ask(gateway, key: powerless, body: body)
                _ = await surface.ask(gateway, key: "nobody's", body: body)
                #expect(gateway.gate.inFlight == 0)
            }
            for headers in [["X-Request-Timeout-Ms": "soon"], ["Content-Encoding": "gzip"], ["Idempotency-Key": "k"]] {
                var asked = surface
                asked.headers = headers
                _ = await asked.ask(gateway, key: key)
                #expect(gateway.gate.inFlight == 0)
            }
            guard surface.waits else { return }
            isHeld.change { $0 = true }
            let before = started.current
            let task = Task { await surface.ask(gateway, key: key) }
            try await started.wait { $0 > before }
            #expect(gateway.gate.inFlight == 1)
            task.cancel()
            _ = await task.value
            #expect(gateway.gate.inFlight == 0)
        }
    }

    @Test("Refusals under load are paced, spread over one to three seconds, counted, and logged only for debugging")
    func cheapAnswers() async throws {
        try await TestGateway.run(maxInFlight: 10) { gateway, key in
            _ = try Self.fill(gateway, 10)
            var delays: [String: Int] = [:]
            for number in 0..<30 {
                let answer = await gateway.send(#"{"token":"d"}"#, key: key, headers: ["X-Request-ID": "id-\(number)"])
                #expect(answer.header("X-Request-ID") == "id-\(number)")
                delays[answer.header("Retry-After") ?? "", default: 0] += 1
            }
            #expect(delays == ["1": 10, "2": 10, "3": 10])
            #expect(try Self.shed(gateway, .inFlight) == 30)
            let lines = gateway.logs.entries.filter { $0.message == "Request answered" && $0.level > .debug }
            #expect(lines.isEmpty)
            for dialect in Dialect.allCases {
                #expect(gateway.gate.answer(.inFlight, in: dialect).isPaced)
            }
            let duration = try gateway.metrics.expectTimer(
                "fcmgw_http_request_duration_seconds",
                [("route", SendMessage.template), ("method", "POST"), ("status", "503")]
            )
            #expect(duration.values.count == 30)
        }
    }

    @Test("At the in-flight limit a request is refused before its key is checked")
    func order() async throws {
        try await TestGateway.run(maxInFlight: 2) { gateway, key in
            let others = try Self.fill(gateway, 1)
            let body = "not even JSON"
            #expect(await gateway.send(body, key: key).status == 400)
            #expect(await gateway.send(body, key: "nobody's").status == 401)
            _ = try Self.fill(gateway, 1)
            #expect(await gateway.send(body, key: "nobody's").status == 503)
            others.forEach { gateway.gate.leave($0) }
            #expect(await gateway.send(body, key: "nobody's").status == 401)
        }
    }

    @Test("The admin listener never sheds requests")
    func admin() async throws {
        try await TestGateway.run(maxInFlight: 1) { gateway, _ in
            _ = try Self.fill(gateway, 1)
            #expect(await gateway.admin(.get, "/readyz").status != 503 || !gateway.readiness.isServing)
            #expect(await gateway.admin(.get, "/admin/v1/tenants").status == 200)
            #expect(await gateway.admin(.get, "/metrics").status == 200)
        }
    }

    @Test("Every shedding reason has a counter from the start")
    func reasons() throws {
        let metrics = TestMetrics()
        let gate = LoadGate(
            limits: LoadShedder.Limits(maxInFlight: 1, maxLag: .milliseconds(1)),
            metrics: GatewayMetrics(factory: metrics)
        )
        #expect(gate.inFlight == 0)
        for reason in LoadShedder.Reason.allCases {
            #expect(try metrics.expectCounter("fcmgw_shed_total", [("reason", reason.rawValue)]).totalValue == 0)
        }
    }
}
