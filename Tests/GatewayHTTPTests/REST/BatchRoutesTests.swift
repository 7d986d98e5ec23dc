import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct BatchRoutesTests {
    private static let path = "/v1/tenants/demo/batches"
    private static let message = #""message":{"notification":{"title":"Goal"},"ttl":600}"#

    private static func id(_ answer: Answer) throws -> String {
        #expect(answer.status == 202, "\(answer.body)")
        let id = try #require(try answer.json["id"]?.text)
        #expect(answer.header("Location") == "\(Self.path)/\(id)")
        return id
    }

    private static func create(_ gateway: TestGateway, _ key: String, _ rest: String) async throws -> String {
        try Self.id(await gateway.data(.post, Self.path, key: key, body: "{\(Self.message),\(rest)}"))
    }

    @Test("A batch is accepted, sent and reported")
    func whole() async throws {
        try await TestGateway.run { gateway, key in
            let id = try await Self.create(gateway, key, #""to":{"tokens":["a","b","c"]},"keep":"all","label":"x""#)
            var batch = try await gateway.data(.get, "\(Self.path)/\(id)", key: key).json
            #expect(batch["state"] == "queued" && batch["total"]?.int == 3 && batch["waiting"]?.int == 3)
            #expect(batch["label"] == "x" && batch["started_at"] == .null && batch["warnings"] == [])
            gateway.answer(
                SendResult(
                    [.accepted(Acceptance(messageID: "m1")), .rejected(.unregistered), .rejected(.outcomeUnknown)],
                    upstreamCode: "200"
                )
            )
            await gateway.batchRunner.sendDue()
            let call = try #require(gateway.upstream.calls.first)
            #expect(call.target == .tokens(["a", "b", "c"]) && call.command.message.timeToLive == 600)
            let answer = await gateway.data(.get, "\(Self.path)/\(id)", key: key)
            batch = try answer.json
            #expect(batch["state"] == "finished" && answer.header("Retry-After") == nil)
            for name in ["accepted", "rejected", "unknown"] { #expect(batch[name]?.int == 1, "\(name)") }
            let results = try await gateway.data(.get, "\(Self.path)/\(id)/results", key: key).json
            #expect(
                results["results"] == [
                    ["token": "a", "outcome": "accepted", "message_id": "m1"],
                    ["token": "b", "outcome": "rejected", "code": "unregistered", "action": "delete_token"],
                    ["token": "c", "outcome": "unknown", "code": "outcome_unknown"],
                ]
            )
            let rejected = await gateway.data(
                .get,
                "\(Self.path)/\(id)/results?outcome=rejected",
                key: key,
                headers: ["Accept": "application/x-ndjson"]
            )
            #expect(rejected.header("Content-Type") == "application/x-ndjson")
            #expect(rejected.body.split(separator: "\n").count == 1 && rejected.header("Next-Cursor") == nil)
            try await gateway.settleAudit()
            let actions = try await gateway.auditRecords().map(\.action)
            for action in ["batch.create", "message.send", "batch.results"] { #expect(actions.contains(action)) }
            let send = try #require(try await gateway.auditRecords(of: "message.send").first)
            #expect(send.requestID == id && send.principal.hasPrefix("key:") && send.recipients == 3)
            #expect(await gateway.data(.delete, "\(Self.path)/\(id)", key: key).status == 204)
            try await gateway.data(.get, "\(Self.path)/\(id)", key: key).expectProblem(404, "not_found")
        }
    }

    @Test("Parts are uploaded once each, and the batch starts with all of them")
    func parts() async throws {
        try await TestGateway.run { gateway, key in
            let id = try await Self.create(gateway, key, #""open":true"#)
            func put(_ part: Int, _ body: String) async -> Answer {
                await gateway.data(.put, "\(Self.path)/\(id)/parts/\(part)", key: key, body: body)
            }
            func start(_ parts: Int, _ recipients: Int) async -> Answer {
                let body = #"{"parts":\#(parts),"recipients":\#(recipients)}"#
                return await gateway.data(.post, "\(Self.path)/\(id)/start", key: key, body: body)
            }
            let many = (0..<1_200).map { #""t\#($0)""# }.joined(separator: ",")
            #expect(try await put(1, #"{"tokens":[\#(many)]}"#).json == ["part": 1, "recipients": 1200, "total": 1200])
            #expect(try await put(2, #"{"tokens":["x"]}"#).json["total"]?.int == 1201)
            #expect(try await put(2, #"{"tokens":["x"]}"#).json["total"]?.int == 1201)
            try await put(2, #"{"tokens":["y"]}"#).expectProblem(409, "part_conflict")
            try await put(3, #"{"fids":["x"]}"#).expectProblem(409, "batch_state")
            try await put(0, #"{"tokens":["x"]}"#).expectProblem(422, "invalid_field")
            #expect(try await put(4, #"{"tokens":["x", "/topics/y", ""]}"#).faults().isEmpty == false)
            try await start(1, 1201).expectProblem(409, "batch_incomplete")
            #expect(try await start(2, 1201).json["state"] == "queued")
            #expect(try await start(2, 1201).json["state"] == "queued")
            try await put(3, #"{"tokens":["z"]}"#).expectProblem(409, "batch_state")
            while !gateway.upstream.calls.reduce(0, { $0 + $1.target.recipientCount }).isMultiple(of: 1_201)
                || gateway.upstream.calls.isEmpty
            {
                await gateway.batchRunner.sendDue()
            }
            let batch = try await gateway.data(.get, "\(Self.path)/\(id)", key: key).json
            #expect(batch["state"] == "finished" && batch["accepted"]?.int == 1_201)
        }
    }

    @Test("A batch is paused, resumed and cancelled, each as often as asked")
    func changes() async throws {
        try await TestGateway.run { gateway, key in
            let id = try await Self.create(
                gateway,
                key,
                #""to":{"fids":["a"]},"send_at":"2999-01-01T00:00:00Z""#
                    .replacing("2999-01-01T00:00:00Z", with: gateway.clock.now().advanced(by: .seconds(3_600)).rfc3339)
                    .replacing("fids", with: "tokens")
            )
            func change(_ verb: String) async -> Answer {
                await gateway.data(.post, "\(Self.path)/\(id)/\(verb)", key: key)
            }
            for _ in 0..<2 {
                let paused = try await change("pause").json
                #expect(paused["state"] == "paused" && paused["reason"] == "caller")
            }
            try await gateway.data(.delete, "\(Self.path)/\(id)", key: key).expectProblem(409, "batch_state")
            let listed = try await gateway.data(.get, "\(Self.path)?state=paused", key: key).json["batches"]?.elements
            #expect(listed?.compactMap { $0["id"]?.text } == [id])
            for _ in 0..<2 { #expect(try await change("resume").json["state"] == "queued") }
            await gateway.batchRunner.sendDue()
            #expect(gateway.upstream.calls.isEmpty)
            for _ in 0..<2 { #expect(try await change("cancel").json["state"] == "cancelled") }
            try await change("resume").expectProblem(409, "batch_state")
            let results = try await gateway.data(.get, "\(Self.path)/\(id)/results", key: key).json["results"]
            #expect(results == [["token": "a", "outcome": "cancelled"]])
        }
    }

    @Test("A repeat with the same key returns the first batch, and another body is refused")
    func idempotent() async throws {
        try await TestGateway.run { gateway, key in
            func create(_ token: String) async -> Answer {
                let body = "{\(Self.message),\"to\":{\"tokens\":[\"\(token)\"]}}"
                return await gateway.data(.post, Self.path, key: key, body: body, headers: ["Idempotency-Key": "k"])
            }
            let first = await create("a")
            let second = await create("a")
            let (id, again) = (try Self.id(first), try Self.id(second))
            #expect(id == again)
            #expect(first.header("Idempotent-Replayed") == nil && second.header("Idempotent-Replayed") == "true")
            try await create("b").expectProblem(422, "idempotency_conflict")
            await gateway.batchRunner.sendDue()
            #expect(gateway.upstream.calls.count == 1)
        }
    }

    @Test("An asynchronous message is accepted at once, and sent later")
    func message() async throws {
        try await TestGateway.run { gateway, key in
            let headers = ["Prefer": "respond-async"]
            let answer = await gateway.send(#"{"token":"a","data":{"k":"v"}}"#, key: key, headers: headers)
            let id = try Self.id(answer)
            #expect(answer.header("Preference-Applied") == "respond-async" && gateway.upstream.calls.isEmpty)
            await gateway.batchRunner.sendDue()
            let call = try #require(gateway.upstream.calls.first)
            #expect(call.target == .token("a") && call.command.message.data == [DataEntry(key: "k", value: "v")])
            let results = try await gateway.data(.get, "\(Self.path)/\(id)/results", key: key).json["results"]
            #expect(results == [["token": "a", "outcome": "accepted", "message_id": "fcm-1"]])
            // Lists leave messages out unless asked.
            #expect(try await gateway.data(.get, Self.path, key: key).json["batches"] == [])
            let messages = try await gateway.data(.get, "\(Self.path)?messages=true", key: key).json["batches"]
            #expect(messages?.elements.count == 1)
            try await gateway.send(#"{"token":"a","tll":1}"#, key: key, headers: headers)
                .expectProblem(422, "unknown_field")
        }
    }

    @Test(
        "All problems of a body are reported at once, with their places",
        arguments: [
            (#"{"to":{"tokens":["a"]}}"#, ["/message: invalid_field"]),
            (#"{"message":{}}"#, [": invalid_target"]),
            (#"{"message":{},"to":{"tokens":["a"]},"open":true}"#, [": invalid_target"]),
            (
                #"{"message":{"ttl":-1,"token":"x"},"to":{"tokens":["a",7]},"window_s":0,"priority":"x","y":1}"#,
                [
                    "/message/ttl: invalid_field", "/message/token: unknown_field", "/to/tokens/1: invalid_field",
                    "/window_s: invalid_field", "/priority: invalid_field", "/y: unknown_field",
                ]
            ),
            (#"{"message":{},"to":{"topic":"a","tokens":["b"]}}"#, ["/to: invalid_target"]),
            (#"{"message":{},"to":{"token":"a"}}"#, ["/to/token: unknown_field", "/to: invalid_target"]),
            (#"{"message":{},"open":true,"send_at":"2999-01-01T00:00:00Z"}"#, ["/send_at: invalid_field"]),
            (
                #"{"message":{},"open":true,"canary":{"max_rejected_percent":101,"x":1}}"#,
                [
                    "/canary/max_rejected_percent: invalid_field", "/canary/x: unknown_field",
                    "/canary/recipients: invalid_field",
                ]
            ),
        ]
    )
    func problems(body: String, faults: [String]) async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.data(.post, Self.path, key: key, body: body)
            #expect(answer.status == 422)
            let found = try answer.faults()
            #expect(found == faults)
        }
    }

    @Test("Rights are checked: to send, to manage, and to read another key's tokens")
    func rights() async throws {
        try await TestGateway.run { gateway, key in
            let id = try await Self.create(gateway, key, #""to":{"tokens":["a"]}"#)
            let manager = try await gateway.makeKey(scopes: [.manageBatches])
            let sender = try await gateway.makeKey(scopes: [.sendMessages, .manageBatches], topicPrefixes: ["news-"])
            let body = "{\(Self.message),\"to\":{\"topic\":\"other\"}}"
            try await gateway.data(.post, Self.path, key: manager, body: body).expectProblem(403, "forbidden")
            try await gateway.data(.post, Self.path, key: sender, body: body).expectProblem(403, "forbidden")
            #expect(await gateway.data(.post, "\(Self.path)/\(id)/pause", key: manager).status == 200)
            try await gateway.data(.post, "\(Self.path)/\(id)/resume", key: manager).expectProblem(403, "forbidden")
            try await gateway.data(.get, "\(Self.path)/\(id)/results", key: sender).expectProblem(403, "forbidden")
            let reader = try await gateway.makeKey(scopes: [.sendMessages, .readTokens])
            #expect(await gateway.data(.get, "\(Self.path)/\(id)/results", key: reader).status == 200)
            let other = try await gateway.makeKey(scopes: Set(Scope.allCases), tenant: "other")
            try await gateway.data(.get, "/v1/tenants/other/batches/\(id)", key: other).expectProblem(404, "not_found")
        }
    }

    @Test("Operators see the batches of all tenants, and change them")
    func operators() async throws {
        try await TestGateway.run { gateway, key in
            let id = try await Self.create(gateway, key, #""to":{"tokens":["a"]}"#)
            let listed = try await gateway.admin(.get, "/admin/v1/batches").json["batches"]?.elements
            #expect(listed?.compactMap { $0["tenant"]?.text } == ["demo"])
            let paused = try await gateway.admin(.post, "/admin/v1/batches/\(id)/pause").json
            #expect(paused["state"] == "paused" && paused["reason"] == "operator")
            #expect(try await gateway.admin(.post, "/admin/v1/batches/\(id)/resume").json["state"] == "queued")
            #expect(try await gateway.admin(.post, "/admin/v1/batches/\(id)/cancel").json["state"] == "cancelled")
            try await gateway.admin(.post, "/admin/v1/batches/x/cancel").expectProblem(404, "not_found")
            try await gateway.settleAudit()
            let records = try await gateway.auditRecords().filter { $0.object == id && $0.outcome == .done }
            #expect(records.map(\.action) == ["batch.pause", "batch.resume", "batch.cancel"])
        }
    }
}
