import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

/// `Idempotency-Key` on all three surfaces.
struct IdempotencyTests {
    private static let unknown = SendResult(refused: .outcomeUnknown, upstreamCode: "deadlineExceeded")

    /// Runs a body with a gateway whose `demo` has a project.
    private static func run(
        _ body: @escaping @Sendable (TestGateway, _ key: String) async throws -> Void
    ) async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            try await body(gateway, key)
        }
    }

    private static func send(
        _ gateway: TestGateway,
        _ surface: SendSurface,
        _ body: String? = nil,
        key: String,
        once: String = "key-1",
        headers: [String: String] = [:]
    ) async -> Answer {
        await surface.send(gateway, body, key: key, headers: headers.merging(["Idempotency-Key": once]) { $1 })
    }

    private static func count(_ result: String, _ gateway: TestGateway) -> Int64? {
        try? gateway.metrics.expectCounter("fcmgw_idempotency_total", [("result", result)]).totalValue
    }

    @Test("A repeat gets the first answer byte for byte and is not sent or recorded again", arguments: SendSurface.json)
    func replay(surface: SendSurface) async throws {
        try await Self.run { gateway, key in
            let first = await Self.send(gateway, surface, key: key, headers: ["X-Request-ID": "first-request"])
            #expect(first.status == 200, "\(first.body)")
            #expect(first.header("Idempotent-Replayed") == nil)
            #expect(first.header("RateLimit") != nil)
            for number in 1...2 {
                let again = await Self.send(gateway, surface, key: key, headers: ["X-Request-ID": "repeat-\(number)"])
                #expect(again.status == 200)
                #expect(again.body == first.body)
                #expect(again.header("Content-Type") == first.header("Content-Type"))
                #expect(again.header("Idempotent-Replayed") == "true")
                #expect(again.header("X-Request-ID") == "repeat-\(number)")
                #expect(again.header("RateLimit") == nil)
            }
            #expect(gateway.upstream.calls.count == 1)
            try await gateway.settleAudit()
            let records = try await gateway.auditRecords(of: "message.send")
            #expect(records.map(\.requestID) == ["first-request"])
            #expect(Self.count("fresh", gateway) == 1)
            #expect(Self.count("replay", gateway) == 2)
        }
    }

    @Test(
        "FCM's refusal and an unknown outcome are replayed, and nothing is sent again",
        arguments: SendSurface.json,
        [SendResult.rejecting(Rejection(code: .senderMismatch)), Self.unknown]
    )
    func refusals(surface: SendSurface, result: SendResult) async throws {
        try await Self.run { gateway, key in
            gateway.answer(result)
            let first = await Self.send(gateway, surface, key: key)
            let again = await Self.send(gateway, surface, key: key)
            #expect(again.status == first.status)
            #expect(again.body == first.body)
            #expect(again.header("Idempotent-Replayed") == "true")
            #expect(gateway.upstream.calls.count == 1)
            guard result == Self.unknown else { return }
            #expect(first.status == (surface == .legacy ? 200 : 504))
            let names: [SendSurface: String] = [
                .rest: "outcome_unknown", .legacy: "InternalServerError", .v1: "DEADLINE_EXCEEDED",
            ]
            #expect(surface.outcome(of: first) == names[surface])
            #expect(Self.count("unknown", gateway) == 1)
        }
    }

    @Test("A different request with the same key is refused", arguments: SendSurface.json)
    func mismatch(surface: SendSurface) async throws {
        try await Self.run { gateway, key in
            #expect(await Self.send(gateway, surface, key: key).status == 200)
            let other = await Self.send(gateway, surface, surface.body(score: "3x2"), key: key)
            switch surface {
            case .rest:
                let problem = try other.expectProblem(422, "idempotency_conflict")
                #expect(problem["retryable"] == false)
            case .legacy, .form:
                #expect(other.status == 400)
                #expect(other.body == #"{"error":"InvalidParameters"}"#)
            case .v1:
                #expect(other.status == 400)
                #expect(other.value["error"]?["status"] == "INVALID_ARGUMENT")
            }
            #expect(other.header("Idempotent-Replayed") == nil)
            #expect(gateway.upstream.calls.count == 1)
            #expect(Self.count("conflict", gateway) == 1)
        }
    }

    @Test("A request with another spelling or deadline is a repeat", arguments: SendSurface.json)
    func respelled(surface: SendSurface) async throws {
        let bodies =
            switch surface {
            case .rest:
                [
                    #"{"token":"w","ttl":5,"data":{"a":"1","b":"/"}}"#,
                    #" {"d\u0061ta": {"b": "\/", "a": "1"},"ttl": 5.0, "token":"w"} "#,
                ]
            case .legacy, .form:
                [
                    #"{"to":"w","time_to_live":5,"data":{"a":"1","b":"/"}}"#,
                    #" {"d\u0061ta": {"b": "\/", "a": "1"},"time_to_live": 50e-1, "to":"w", "unknown": 1} "#,
                ]
            case .v1:
                [
                    #"{"message":{"token":"w","apns":{"payload":{"a":1,"b":"/"}},"android":{"ttl":"5s"}}}"#,
                    #" {"message": {"android":{"ttl":"5s"}, "apns":{"payload":{"\u0062": "\/", "a": 1.0}},"token":"w"}} "#,
                ]
            }
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(surface == .v1 ? .v1 : .legacy)
            let first = await Self.send(gateway, surface, bodies[0], key: key)
            #expect(first.status == 200, "\(first.body)")
            let headers = ["X-Request-Timeout-Ms": "1500"]
            let again = await Self.send(gateway, surface, bodies[1], key: key, headers: headers)
            #expect(again.body == first.body)
            #expect(again.header("Idempotent-Replayed") == "true")
            let other = bodies[1].replacing(#"\/"#, with: #"\\"#)
            #expect(await Self.send(gateway, surface, other, key: key).header("Idempotent-Replayed") == nil)
            #expect(Self.count("conflict", gateway) == 1)
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("A legacy list with unsent entries and a form are different requests")
    func legacyForms() async throws {
        try await Self.run { gateway, key in
            #expect(await Self.send(gateway, .legacy, #"{"registration_ids":["a"]}"#, key: key).status == 200)
            #expect(await Self.send(gateway, .legacy, #"{"registration_ids":["a",""]}"#, key: key).status == 400)
            let json = await Self.send(gateway, .legacy, #"{"to":"a","data":{"b":"c"}}"#, key: key, once: "key-2")
            #expect(json.status == 200)
            let headers = ["Content-Type": "application/x-www-form-urlencoded"]
            let form = await Self.send(
                gateway,
                .legacy,
                "registration_id=a&data.b=c",
                key: key,
                once: "key-2",
                headers: headers
            )
            #expect(form.status == 400, "\(form.body)")
            #expect(gateway.upstream.calls.count == 2)
        }
    }

    @Test("A repeat of a send in progress is told to wait", arguments: SendSurface.json)
    func inProgress(surface: SendSurface) async throws {
        try await Self.run { gateway, key in
            gateway.hold()
            async let first = Self.send(gateway, surface, key: key)
            try await gateway.upstream.wait(forCalls: 1)
            let early = await Self.send(gateway, surface, key: key)
            let other = await Self.send(gateway, surface, surface.body(score: "0"), key: key)
            gateway.hold(false)
            let answer = await first
            #expect(answer.status == 200)
            #expect(early.header("Retry-After") == "1")
            switch surface {
            case .rest:
                #expect(early.status == 409)
                let codes = [try early.code(), try other.code()]
                #expect(codes == ["idempotency_in_progress", "idempotency_conflict"])
            case .legacy, .form:
                #expect(early.status == 503)
                #expect(early.body == #"{"error":"Unavailable"}"#)
            case .v1:
                #expect(early.status == 409)
                #expect(early.value["error"]?["status"] == "ABORTED")
            }
            #expect(await Self.send(gateway, surface, key: key).body == answer.body)
            #expect(gateway.upstream.calls.count == 1)
            #expect(Self.count("in_progress", gateway) == 1)
        }
    }

    @Test(
        "A send that failed for a passing cause frees the key",
        arguments: SendSurface.json,
        [OutcomeCode.upstreamUnavailable, .upstreamInternal, .upstreamCredentials, .deviceRateExceeded]
    )
    func freed(surface: SendSurface, code: OutcomeCode) async throws {
        try await Self.run { gateway, key async throws in
            gateway.answer(SendResult(refused: code, upstreamCode: "x"))
            let first = await Self.send(gateway, surface, key: key)
            #expect(first.status != 200 || surface == .legacy)
            #expect(try await gateway.idempotencyStore.records().isEmpty)
            let again = await Self.send(gateway, surface, key: key)
            #expect(again.status == 200)
            #expect(again.header("Idempotent-Replayed") == nil)
            #expect(gateway.upstream.calls.count == 2)
            // A different request may also use the key as long as nothing was sent.
            gateway.answer(SendResult(refused: code, upstreamCode: "x"))
            _ = await Self.send(gateway, surface, key: key, once: "key-2")
            #expect(await Self.send(gateway, surface, surface.body("other"), key: key, once: "key-2").status == 200)
            #expect(Self.count("freed", gateway) == 2)
        }
    }

    @Test("A rate-limited send frees the key and leaves no record")
    func limits() async throws {
        let one = try #require(RatePolicy(rate: 1, periodSeconds: 3_600, burst: 1))
        try await TestGateway.run(limits: LimitPolicies(tenant: [one])) { gateway, key async throws in
            #expect(await Self.send(gateway, .rest, key: key).status == 200)
            for _ in 1...3 {
                #expect(await Self.send(gateway, .rest, key: key).header("Idempotent-Replayed") == "true")
            }
            #expect(await Self.send(gateway, .rest, key: key, once: "key-2").status == 429)
            #expect(try await gateway.idempotencyStore.records().count == 1)
            gateway.clock.advance(by: .seconds(3_600))
            #expect(await Self.send(gateway, .rest, key: key, once: "key-2").status == 200)
            #expect(gateway.upstream.calls.count == 2)
        }
    }

    @Test("A request that fails validation does not use up its key")
    func validation() async throws {
        try await Self.run { gateway, key in
            for surface in SendSurface.json {
                #expect(await Self.send(gateway, surface, "{", key: key).status >= 400)
                #expect(await Self.send(gateway, surface, key: key).status == 200, "\(surface)")
            }
            #expect(gateway.upstream.calls.count == 3)
        }
    }

    @Test("Keys are separate for each route and tenant, and case-sensitive")
    func identities() async throws {
        try await Self.run { gateway, key in
            let other = try await gateway.makeKey(scopes: [.sendMessages], tenant: "other")
            for surface in SendSurface.json { #expect(await Self.send(gateway, surface, key: key).status == 200) }
            #expect(await Self.send(gateway, .rest, key: key, once: "KEY-1").header("Idempotent-Replayed") == nil)
            let answer = await gateway.data(
                .post,
                "/v1/tenants/other/messages",
                key: other,
                body: SendSurface.rest.body(),
                headers: ["Idempotency-Key": "key-1"]
            )
            #expect(answer.status == 200)
            #expect(answer.header("Idempotent-Replayed") == nil)
            #expect(gateway.upstream.calls.count == 5)
            // All API keys of a tenant share its idempotency keys.
            let second = try await gateway.makeKey(scopes: [.sendMessages])
            #expect(await Self.send(gateway, .rest, key: second).header("Idempotent-Replayed") == "true")
        }
    }

    @Test("A caller that may not send gets no stored answer")
    func scopes() async throws {
        try await Self.run { gateway, key in
            let reader = try await gateway.makeKey(scopes: [.readAudit])
            let confined = try await gateway.makeKey(scopes: [.sendMessages], topicPrefixes: ["news-"])
            let body = #"{"topic":"sport"}"#
            #expect(await Self.send(gateway, .rest, body, key: key).status == 200)
            for foreign in [reader, confined] {
                let answer = await Self.send(gateway, .rest, body, key: foreign)
                #expect(answer.status == 403)
                #expect(answer.header("Idempotent-Replayed") == nil)
            }
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("A send continues after its caller disconnects, and the repeat gets its answer")
    func disconnect() async throws {
        try await Self.run { gateway, key in
            gateway.hold()
            let caller = Task { await Self.send(gateway, .rest, key: key) }
            try await gateway.upstream.wait(forCalls: 1)
            caller.cancel()
            gateway.hold(false)
            #expect(await caller.value.status == 200)
            let again = await Self.send(gateway, .rest, key: key)
            #expect(again.status == 200)
            #expect(again.header("Idempotent-Replayed") == "true")
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("While the store fails, sends with a key are refused and sends without a key continue")
    func refusingStore() async throws {
        try await Self.run { gateway, key in
            gateway.idempotencyStore.refuse()
            for surface in SendSurface.json {
                let answer = await Self.send(gateway, surface, key: key)
                #expect(answer.status == (surface == .legacy ? 200 : 503), "\(answer.body)")
                #expect(answer.body.contains("Unavailable") || surface != .legacy)
            }
            #expect(gateway.upstream.calls.isEmpty)
            #expect(await gateway.send(SendSurface.rest.body(), key: key).status == 200)
            gateway.idempotencyStore.refuse(false)
            #expect(await Self.send(gateway, .rest, key: key).status == 200)
            #expect(Self.count("failed", gateway) == 3)
        }
    }

    @Test("A stored answer that can't be read is an unknown outcome, not a second send")
    func damage() async throws {
        try await Self.run { gateway, key in
            #expect(await Self.send(gateway, .rest, key: key).status == 200)
            try await gateway.database.execute("UPDATE idempotency_records SET content = x'010203'")
            try await Self.send(gateway, .rest, key: key).expectProblem(504, "outcome_unknown")
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("A hundred concurrent requests with one key cause one send")
    func concurrency() async throws {
        try await Self.run { gateway, key in
            gateway.hold()
            let answers = try await withThrowingTaskGroup(of: Answer.self) { group in
                for _ in 1...100 { group.addTask { await Self.send(gateway, .rest, key: key) } }
                // The first request is held; all others are answered meanwhile.
                var answers: [Answer] = []
                for _ in 1...99 { if let answer = try await group.next() { answers.append(answer) } }
                gateway.hold(false)
                for try await answer in group { answers.append(answer) }
                return answers
            }
            #expect(answers.count { $0.status == 200 } == 1)
            #expect(answers.count { $0.status == 409 } == 99)
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("An admin route refuses an idempotency key")
    func adminRoutes() async throws {
        try await Self.run { gateway, _ in
            let answer = await gateway.admin(
                .post,
                "/admin/v1/tenants/demo/keys",
                body: #"{"scopes":["messages:send"]}"#,
                headers: ["Idempotency-Key": "key-1"]
            )
            #expect(answer.status == 400)
        }
    }

    @Test("A key has 1 to 255 printable characters and is given once")
    func keys() throws {
        func key(_ values: String...) throws -> IdempotencyKey? {
            let name = try #require(HTTPField.Name("Idempotency-Key"))
            var fields = HTTPFields()
            for value in values { fields.append(HTTPField(name: name, value: value)) }
            return values.isEmpty ? nil : try IdempotencyKey(in: HTTPFieldLines(fields))
        }
        #expect(try key() == nil)
        for text in ["k", "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", "a b", String(repeating: "~", count: 255)] {
            #expect(try key(text) != nil, "\(text)")
        }
        #expect(try key("a") != key("b"))
        #expect(try key("a") == key("a"))
        for text in ["", "ä", "tab\tbed", String(repeating: "k", count: 256)] {
            #expect(throws: Refusal.self, "\(text)") { try key(text) }
        }
        #expect(throws: Refusal.self) { try key("a", "a") }
        #expect(throws: Refusal.self) { try key("a", "b") }
    }
}
