import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct RetiredTokenRoutesTests {
    private static let path = "/v1/tenants/demo/retired-tokens"

    /// Lets FCM retire or replace a token, and waits until the feed has it.
    private static func retire(_ gateway: TestGateway, _ key: String, _ token: String, by replacement: String? = nil)
        async
    {
        let outcome: RecipientOutcome =
            replacement.map { .accepted(Acceptance(messageID: "m", replacementToken: $0)) } ?? .rejected(.unregistered)
        gateway.answer(.outcomes(outcome))
        _ = await gateway.send(#"{"token":"\#(token)"}"#, key: key)
        await gateway.retired.settleAndFlush()
        gateway.clock.advance(by: .seconds(3_900))
        await gateway.retired.settleAndFlush()
    }

    @Test("An entry has the token, the reason, the time and the replacement")
    func entries() async throws {
        try await TestGateway.run { gateway, key in
            let empty = await gateway.data(.get, Self.path, key: key)
            #expect(empty.status == 200)
            let nothing = try empty.json
            #expect(nothing.without("resume_cursor") == ["retired_tokens": []])
            await Self.retire(gateway, key, "gone")
            await Self.retire(gateway, key, "old", by: "new")
            let answer = await gateway.data(.get, Self.path, key: key)
            #expect(answer.header("Content-Type") == "application/json")
            let json = try answer.json
            #expect(
                json.without("resume_cursor") == [
                    "retired_tokens": [
                        ["token": "gone", "reason": "unregistered", "since": "2026-03-01T12:00:00.000Z"],
                        [
                            "token": "old", "reason": "replaced", "since": "2026-03-01T13:05:00.000Z",
                            "replacement_token": "new",
                        ],
                    ]
                ]
            )
        }
    }

    @Test("Reading is recorded without the tokens, and no token is logged")
    func recorded() async throws {
        try await TestGateway.run { gateway, key in
            await Self.retire(gateway, key, "gone")
            #expect(await gateway.data(.get, Self.path, key: key).status == 200)
            try await gateway.settleAudit()
            let list = await gateway.data(.get, "/v1/tenants/demo/audit?action=retired_tokens.list", key: key)
            let records = list.value["records"]?.elements ?? []
            #expect(records.map { $0["object"]?.text } == ["1 tokens"])
            #expect(records.map { $0["outcome"]?.text } == ["accepted"])
            #expect(!list.body.contains("gone"))
            await Self.retire(gateway, key, "canary-token", by: "canary-replacement")
            #expect(await gateway.data(.get, Self.path, key: key).body.contains("canary-replacement"))
            #expect(!gateway.logText.contains("canary"))
        }
    }

    @Test("Pages follow without a gap, and the last page's cursor finds later entries")
    func paging() async throws {
        try await TestGateway.run { gateway, key in
            for index in 0..<5 { await Self.retire(gateway, key, "t\(index)", by: "new") }
            var seen: [String] = []
            var cursor = ""
            var resume = ""
            var pages = 0
            repeat {
                let json = try await gateway.data(.get, "\(Self.path)?limit=2\(cursor)", key: key).json
                seen += json["retired_tokens"]?.elements.compactMap { $0["token"]?.text } ?? []
                cursor = json["next_cursor"]?.text.map { "&cursor=\($0)" } ?? ""
                resume = try #require(json["resume_cursor"]?.text)
                if let next = json["next_cursor"] { #expect(next.text == resume) }
                pages += 1
                if pages == 2 { await Self.retire(gateway, key, "t5", by: "new") }
            } while !cursor.isEmpty
            #expect(seen == ["t0", "t1", "t2", "t3", "t4", "t5"])
            let none = try await gateway.data(.get, "\(Self.path)?cursor=\(resume)", key: key).json
            #expect(none.without("resume_cursor") == ["retired_tokens": []])
            await Self.retire(gateway, key, "late", by: "new")
            let late = try await gateway.data(.get, "\(Self.path)?cursor=\(resume)", key: key).json
            #expect(late["retired_tokens"]?.elements.map { $0["token"]?.text } == ["late"])
        }
    }

    @Test("A cursor from before the store was restored is refused, and the refusal is recorded")
    func staleCursor() async throws {
        try await TestGateway.run { gateway, key in
            await Self.retire(gateway, key, "gone")
            let page = try await gateway.data(.get, Self.path, key: key).json
            let cursor = try #require(page["resume_cursor"]?.text)
            try await gateway.retiredStore.renewEpoch()
            let answer = await gateway.data(.get, "\(Self.path)?cursor=\(cursor)", key: key)
            #expect(answer.status == 422)
            #expect(try answer.problem()["code"] == "invalid_field")
            let again = try await gateway.data(.get, Self.path, key: key).json
            #expect(again["retired_tokens"]?.elements.count == 1)
            #expect(again["resume_cursor"]?.text != cursor)
            try await gateway.settleAudit()
            let list = await gateway.data(.get, "/v1/tenants/demo/audit?action=retired_tokens.list", key: key)
            let records = list.value["records"]?.elements ?? []
            #expect(records.map { $0["outcome"]?.text } == ["accepted", "rejected", "accepted"])
        }
    }

    @Test("A token removed from the list is sent to again, and the removal is recorded", arguments: ["token", "fid"])
    func delete(parameter: String) async throws {
        try await TestGateway.run { gateway, key in
            if parameter == "fid" { try await gateway.setUpstream(.v1) }
            let body = #"{"\#(parameter)":"device-1"}"#
            gateway.answer(.rejecting(Rejection(code: .unregistered)))
            #expect(await gateway.send(body, key: key).status == 410)
            #expect(await gateway.send(body, key: key).status == 410)
            #expect(gateway.upstream.calls.count == 1)
            let path = "\(Self.path)?\(parameter)=device-1"
            #expect(await gateway.data(.delete, path, key: key).status == 204)
            let again = await gateway.data(.delete, path, key: key)
            #expect(again.status == 404)
            #expect(try again.problem()["code"] == "not_found")
            #expect(await gateway.send(body, key: key).status == 200)
            #expect(gateway.upstream.calls.count == 2)
            await gateway.retired.settleAndFlush()
            #expect(try await gateway.retiredStore.entries().isEmpty)

            try await gateway.settleAudit()
            let list = await gateway.data(
                .get,
                "/v1/tenants/demo/audit?action=retired_tokens.delete&target=device-1",
                key: key
            )
            let records = list.value["records"]?.elements ?? []
            #expect(records.map { $0["outcome"]?.text } == ["rejected", "accepted"])
            #expect(records.map { $0["target_kind"]?.text } == [parameter, parameter])
            #expect(!list.body.contains("device-1"))
            #expect(!gateway.logText.contains("device-1"))
        }
    }

    @Test("A removal needs exactly one token")
    func deleteRefused() async throws {
        try await TestGateway.run { gateway, key in
            for query in ["", "?token=", "?token=a&fid=b", "?token=a&token=b", "?tokens=a"] {
                #expect(await gateway.data(.delete, Self.path + query, key: key).status == 422, "\(query)")
            }
        }
    }

    @Test("A dry run asks FCM about a retired token, and an acceptance takes it off the list")
    func dryRun() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(.rejecting(Rejection(code: .unregistered)))
            #expect(await gateway.send(#"{"token":"gone"}"#, key: key).status == 410)
            gateway.answer(.rejecting(Rejection(code: .unregistered)))
            #expect(await gateway.send(#"{"token":"gone","dry_run":true}"#, key: key).status == 410)
            #expect(gateway.upstream.calls.count == 2)
            #expect(await gateway.send(#"{"token":"gone"}"#, key: key).status == 410)
            #expect(gateway.upstream.calls.count == 2)
            #expect(await gateway.send(#"{"tokens":["gone"],"dry_run":true}"#, key: key).status == 200)
            #expect(await gateway.send(#"{"token":"gone"}"#, key: key).status == 200)
            #expect(gateway.upstream.calls.count == 4)
        }
    }

    @Test("Every surface answers a local refusal like a refusal by FCM")
    func surfaces() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            gateway.answer(.rejecting(Rejection(code: .unregistered)))
            let first = await gateway.send(#"{"token":"gone"}"#, key: key)
            let second = await gateway.send(#"{"token":"gone"}"#, key: key)
            #expect(first.status == 410)
            #expect(second.status == 410)
            let problems = [try first.problem(), try second.problem()]
            #expect(problems[1].without("id") == problems[0].without("id"))
            #expect(second.header("RateLimit") == first.header("RateLimit"))
            let list = try await gateway.send(#"{"tokens":["gone","a"]}"#, key: key).json
            #expect(
                list["results"]?[0] == [
                    "token": "gone", "status": "rejected", "code": "unregistered", "retryable": false,
                    "action": "delete_token",
                ]
            )
            #expect(list["results"]?[1]?["status"] == "accepted")
            let legacy = try await gateway.legacy(#"{"to":"gone"}"#, key: key).json
            #expect(legacy["results"] == [["error": "NotRegistered"]])
            #expect(legacy["failure"] == 1)
            #expect(await gateway.form("registration_id=gone", key: key).body == "Error=NotRegistered")
            let v1 = await gateway.v1(#"{"message":{"token":"gone"}}"#, key: key)
            #expect(v1.status == 404)
            #expect(try v1.json["error"]?["status"] == "NOT_FOUND")
            #expect(try v1.json["error"]?["details"]?[0]?["errorCode"] == "UNREGISTERED")
            #expect(gateway.upstream.calls.count == 2)
            let explained = await gateway.data(
                .post,
                "/v1/tenants/demo/messages/explain",
                key: key,
                body: #"{"token":"gone"}"#
            )
            #expect(try explained.json["refused"]?["code"] == "unregistered")
        }
    }
}
