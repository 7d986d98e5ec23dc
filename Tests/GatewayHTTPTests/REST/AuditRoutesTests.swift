import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct AuditRoutesTests {
    private static let path = "/v1/tenants/demo/audit"

    @Test("A record describes a send completely, except for the token and the payload")
    func record() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(
                SendResult(
                    [.accepted(Acceptance(messageID: "0:77")), .rejected(.unregistered)],
                    upstreamCode: "NotRegistered"
                )
            )
            let sent = await gateway.send(
                #"{"tokens":["device-1","device-2"],"data":{"k":"payload-text"}}"#,
                key: key,
                headers: [
                    "X-Request-ID": "request-7",
                    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                ]
            )
            let answer = try await Self.list(gateway, key, "action=message.send")
            #expect(answer.header("Content-Type") == "application/json")
            let json = try answer.json
            #expect(json.keys == ["records"])
            let record = try #require(json["records"]?[0])
            let sentJSON = try sent.json
            #expect(record["message"] == sentJSON["id"])
            #expect(record["hash"]?.text?.wholeMatch(of: /[0-9a-f]{64}/) != nil)
            let targets = record["targets"]?.elements ?? []
            #expect(targets.count == 2)
            #expect(targets.allSatisfy { $0.text?.wholeMatch(of: /[0-9a-f]{32}/) != nil })
            #expect(
                record["results"] == [
                    ["target": targets[0], "outcome": "accepted", "fcm_message_id": "0:77"],
                    ["target": targets[1], "outcome": "rejected", "code": "unregistered"],
                ]
            )
            let keyID = try #require(APIKey(key)?.id)
            #expect(
                record.without("message", "hash", "targets", "results") == [
                    "time": "2026-03-01T12:00:00.000Z", "tenant": "demo",
                    "principal": .string("key:\(keyID)"), "method": "POST", "action": "message.send",
                    "outcome": "partial", "code": "unregistered", "target_kind": "tokens", "recipients": 2,
                    "accepted": 1, "bytes": 13, "upstream_code": "NotRegistered", "request_id": "request-7",
                    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
                ]
            )
            #expect(!answer.body.contains("device-"))
            #expect(!answer.body.contains("payload"))
            #expect(!answer.body.contains(key))
        }
    }

    @Test("The record of a single message has FCM's message id")
    func lone() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(.outcomes(.accepted(Acceptance(messageID: "0:77"))))
            _ = await gateway.send(#"{"topic":"news"}"#, key: key)
            _ = await gateway.send(#"{"token":"device","dry_run":true}"#, key: key)
            let records = try await gateway.records("", key: key)
            #expect(records.first?["action"] == "message.validate")
            let send = records.first { $0["action"] == "message.send" }
            #expect(send?["fcm_message_id"] == "0:77")
            #expect(send?["target_kind"] == "topic")
            #expect(send?["outcome"] == "accepted")
            #expect(send?["code"] == nil)
        }
    }

    @Test("Every filter finds exactly the matching records")
    func filters() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.send(#"{"token":"cK:token/with+signs="}"#, key: key)
            gateway.clock.advance(by: .seconds(60))
            gateway.answer(SendResult(refused: .upstreamUnavailable, upstreamCode: "503"))
            let second = await gateway.send(
                #"{"tokens":["x","shared"]}"#,
                key: key,
                headers: ["X-Request-ID": "second"]
            )
            gateway.clock.advance(by: .seconds(60))
            _ = await gateway.send(#"{"condition":"'news' in topics || 'shared' in topics"}"#, key: key)
            let message = try #require(try second.json["id"]?.text)
            let keyID = try #require(APIKey(key)?.id)
            let otherKey = try await gateway.makeKey(scopes: [.readAudit])
            let otherKeyID = try #require(APIKey(otherKey)?.id)

            let sends = "action=message.send"
            let expectations: [(String, [String?])] = [
                (sends, ["condition", "tokens", "token"]),
                ("\(sends)&outcome=accepted", ["condition", "token"]),
                ("outcome=rejected", ["tokens"]),
                ("message=\(message)", ["tokens"]),
                ("message=none", []),
                ("code=upstream_unavailable", ["tokens"]),
                ("\(sends)&code=unregistered", []),
                ("request_id=second", ["tokens"]),
                ("request_id=secon", []),
                ("\(sends)&principal=\(keyID)", ["condition", "tokens", "token"]),
                ("\(sends)&principal=key:\(keyID)", ["condition", "tokens", "token"]),
                ("\(sends)&principal=\(otherKeyID)", []),
                ("\(sends)&principal=admin", []),
                ("action=key.create&principal=admin&outcome=done&limit=1", [nil]),
                ("target=cK%3Atoken%2Fwith%2Bsigns%3D", ["token"]),
                ("target=cK:token/with+signs=", ["token"]),
                ("target=shared", ["condition", "tokens"]),
                ("target=news", ["condition"]),
                ("target=unknown", []),
                ("\(sends)&from=2026-03-01T12:01:00Z", ["condition", "tokens"]),
                ("\(sends)&from=2026-03-01T12:01:00.001Z", ["condition"]),
                ("\(sends)&to=2026-03-01T12:01:00Z", ["token"]),
                ("\(sends)&from=2026-03-01T13:01:00%2B01:00&to=2026-03-01T12:02:00Z", ["tokens"]),
                ("\(sends)&limit=1", ["condition"]),
                ("\(sends)&from=&to=&outcome=&target=&message=&cursor=&limit=", ["condition", "tokens", "token"]),
            ]
            for (query, kinds) in expectations {
                let records = try await gateway.records(query, key: key)
                #expect(records.map { $0["target_kind"]?.text } == kinds, "\(query)")
            }
        }
    }

    @Test("Pages follow without a gap, newest first, while records are added")
    func paging() async throws {
        try await TestGateway.run { gateway, key in
            for index in 0..<5 {
                _ = await gateway.send(#"{"token":"t\#(index)"}"#, key: key, headers: ["X-Request-ID": "r\(index)"])
            }
            var seen: [String] = []
            var cursor: String?
            var pages = 0
            repeat {
                let next = cursor.map { "&cursor=\($0)" } ?? ""
                let page = try await Self.list(gateway, key, "action=message.send&limit=2\(next)").json
                seen += page["records"]?.elements.compactMap { $0["request_id"]?.text } ?? []
                cursor = page["next_cursor"]?.text
                pages += 1
                if pages == 1 {
                    _ = await gateway.send(#"{"token":"late"}"#, key: key, headers: ["X-Request-ID": "late"])
                }
            } while cursor != nil
            #expect(seen == ["r4", "r3", "r2", "r1", "r0"])
            #expect(pages == 3)
        }
    }

    @Test("A tenant's pages and cursors reveal nothing about the number of other tenants' records")
    func blindCursors() async throws {
        try await TestGateway.run { gateway, key in
            let otherKey = try await gateway.makeKey(scopes: [.readAudit, .sendMessages], tenant: "other")
            var cursors: [String] = []
            for _ in 0..<3 {
                for index in 0..<40 {
                    _ = await gateway.data(
                        .post,
                        "/v1/tenants/other/messages",
                        key: otherKey,
                        body: #"{"token":"t\#(index)"}"#
                    )
                }
                _ = await gateway.send(#"{"token":"device"}"#, key: key)
                let page = try await Self.list(gateway, key, "limit=1").json
                #expect(page["records"]?[0]?["seq"] == nil)
                #expect(page["records"]?[0]?["writer"] == nil)
                #expect(page["records"]?[0]?["tenant_uid"] == nil)
                cursors.append(try #require(page["next_cursor"]?.text))
            }
            #expect(Set(cursors.map(\.count)).count == 1)
            #expect(Set(cursors.map { $0.prefix(8) }).count == cursors.count)

            let foreign = await gateway.data(.get, "/v1/tenants/other/audit?cursor=\(cursors[0])", key: otherKey)
            #expect(foreign.status == 422)
            #expect(await gateway.admin(.get, "/admin/v1/audit?cursor=\(cursors[0])").status == 422)
            let operators = try await gateway.admin(.get, "/admin/v1/audit?limit=1&tenant=demo").json
            let cursor = try #require(operators["next_cursor"]?.text)
            #expect(await gateway.data(.get, "\(Self.path)?cursor=\(cursor)", key: key).status == 422)
        }
    }

    @Test("A tenant sees no records of an earlier tenant of its name, even with the same creation time")
    func lives() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.send(#"{"token":"device"}"#, key: key, headers: ["X-Request-ID": "early"])
            try await gateway.settleAudit()
            _ = await gateway.admin(.delete, "/admin/v1/tenants/demo")
            let made = await gateway.admin(.put, "/admin/v1/tenants/demo", body: #"{"display_name":"Demo"}"#)
            #expect(made.status == 201)
            let newKey = try await gateway.makeKey(scopes: [.readAudit])
            let records = try await gateway.records("limit=500", key: newKey)
            #expect(
                records.map { "\($0["action"]?.text ?? "") \($0["outcome"]?.text ?? "")" }
                    == ["key.create done", "key.create intent", "tenant.put done", "tenant.put intent"]
            )
            for query in ["request_id=early", "action=tenant.delete", "principal=\(APIKey(key)?.id ?? "")"] {
                #expect(try await Self.list(gateway, newKey, query).json == ["records": []], "\(query)")
            }

            let all = try await gateway.admin(.get, "/admin/v1/audit?tenant=demo&limit=500").json["records"]?.elements
            #expect(all?.contains { $0["request_id"] == "early" } == true)
            #expect(Set((all ?? []).compactMap { $0["tenant_uid"]?.text }).count == 2)
        }
    }

    @Test("Reading by tenants and operators is recorded; a tenant is refused if that is impossible")
    func readingIsRecorded() async throws {
        try await TestGateway.run { gateway, key in
            _ = try await Self.list(gateway, key, "action=message.send")
            _ = await gateway.admin(.get, "/admin/v1/audit?tenant=demo&action=message.send")
            _ = await gateway.admin(.get, "/admin/v1/audit?tenant=nobody")
            try await gateway.settleAudit()
            let records = try await gateway.auditRecords(of: "audit.list")
            let keyID = try #require(APIKey(key)?.id)
            #expect(records.map(\.principal) == ["key:\(keyID)", "admin", "admin"])
            #expect(records.map(\.tenant) == ["demo", "demo", nil])
            #expect(records.map(\.outcome) == [.accepted, .done, .done])
            #expect(records.map(\.object) == ["0 records", "0 records", "0 records"])
            #expect(records[0].tenantUID == records[1].tenantUID && records[0].tenantUID != 0)
        }
        try await TestGateway.run(auditCapacity: 0) { gateway, key in
            let code = try await gateway.data(.get, Self.path, key: key).code()
            #expect(code == "audit_unavailable")
            #expect(await gateway.admin(.get, "/admin/v1/audit").status == 200)
        }
    }

    @Test("A page costs the tenant's quota, and without quota the request is refused")
    func charged() async throws {
        let policy = try #require(RatePolicy(rate: 2, periodSeconds: 60, burst: 2))
        try await TestGateway.run(limits: LimitPolicies(tenant: [policy])) { gateway, key in
            let first = try await Self.list(gateway, key, "")
            #expect(first.header("RateLimit") == #""tenant";r=1;t=30"#)
            _ = try await Self.list(gateway, key, "")
            let refused = await gateway.data(.get, Self.path, key: key)
            let problem = try refused.expectProblem(429, "tenant_rate_exceeded")
            #expect(problem["limited_by"] == "gateway")
            #expect(problem["retry_after"] == 30)
            #expect(problem["id"] == nil)
            #expect(refused.header("RateLimit") == #""tenant";r=0;t=30"#)
            #expect(await gateway.data(.get, "\(Self.path)?outcome=splendid", key: key).status == 422)
        }
    }

    /// Flushes the audit and returns the answer to a query for `demo`.
    private static func list(_ gateway: TestGateway, _ key: String, _ query: String) async throws -> Answer {
        try await gateway.settleAudit()
        let answer = await gateway.data(.get, "\(Self.path)?\(query)", key: key)
        #expect(answer.status == 200, "\(query)")
        return answer
    }
}
