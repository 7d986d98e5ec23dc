import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import MetricsTestKit
import Testing

@testable import GatewayHTTP

struct DeviceGroupRoutesTests {
    private static let path = "/v1/tenants/demo/device-groups"
    private static let routes: [(method: HTTPRequest.Method, suffix: String, body: String)] = [
        (.get, "", ""), (.get, "/g", ""), (.put, "/g", #"{"tokens":["a"]}"#), (.delete, "/g", ""),
        (.post, "/g/members", #"{"tokens":["a"]}"#), (.post, "/g/members/remove", #"{"tokens":["a"]}"#),
    ]

    @Test("Each request except the list costs the tenant's quota, also on the facade; without quota FCM is not called")
    func charged() async throws {
        let upstream = ScriptedGroupUpstream()
        let limits = LimitPolicies(tenant: [try .sample(1, per: 60, burst: 2)])
        try await TestGateway.run(limits: limits, groupUpstream: upstream) { gateway, key in
            try await gateway.setSender()
            for _ in 0..<2 {
                upstream.answer(GroupResult(.success("key-1"), upstreamCode: "200"))
                #expect(await gateway.data(.get, "/fcm/notification?notification_key_name=g", key: key).status == 200)
            }
            for (method, suffix, body) in Self.routes where !suffix.isEmpty {
                let answer = await gateway.data(method, Self.path + suffix, key: key, body: body)
                let problem = try answer.expectProblem(429, "tenant_rate_exceeded", "\(method) \(suffix)")
                #expect(problem["limited_by"] == "gateway")
                #expect(answer.header("Retry-After") == "60")
            }
            let facade = await gateway.data(.get, "/fcm/notification?notification_key_name=g", key: key)
            #expect(facade.status == 503)
            #expect(facade.header("Retry-After") == "60")
            #expect(await gateway.data(.get, Self.path, key: key).status == 200)
            #expect(upstream.requests.count == 2)
            let denied = gateway.metrics.counterTotal(
                label: "fcmgw_limiter_decisions_total",
                dimensions: [("scope", "tenant"), ("decision", "denied"), ("source", "memory")]
            )
            #expect(denied == 6)
        }
    }

    @Test("A group is declared, extended, shrunk, shown, listed and deleted")
    func life() async throws {
        try await TestGateway.runWithGroups { gateway, key, upstream in
            func members() -> [String]? { upstream.members(ofGroup: "app user/ü") }
            let group = Self.path + "/app%20user%2F%C3%BC"
            let made = await gateway.data(.put, group, key: key, body: #"{"tokens":["a","b","a"]}"#)
            #expect(made.status == 201)
            #expect(made.value.without("updated_at") == ["name": "app user/ü", "tokens": ["a", "b"], "exact": true])
            #expect(made.value["updated_at"] == "2026-03-01T12:00:00.000Z")
            #expect(members() == ["a", "b"])

            #expect(await gateway.data(.put, group, key: key, body: #"{"tokens":["b","c"]}"#).status == 200)
            #expect(members().map(Set.init) == ["b", "c"])
            let more = await gateway.data(.post, group + "/members", key: key, body: #"{"tokens":["d","b"]}"#)
            #expect(more.status == 200)
            #expect(more.value["tokens"] == ["b", "c", "d"])
            let less = await gateway.data(.post, group + "/members/remove", key: key, body: #"{"tokens":["b","x"]}"#)
            #expect(less.status == 200)
            #expect(members().map(Set.init) == ["c", "d"])
            let shown = await gateway.data(.get, group, key: key)
            #expect(shown.value == less.value)
            let list = await gateway.data(.get, Self.path, key: key)
            #expect(list.value == ["device_groups": ["app user/ü"]])
            // FCM's key is never shown.
            #expect(!(made.body + shown.body + list.body).contains("key-"))

            #expect(await gateway.data(.delete, group, key: key).status == 204)
            #expect(members() == nil)
            for method in [HTTPRequest.Method.get, .delete] {
                try await gateway.data(method, group, key: key).expectProblem(404, "not_found")
            }
        }
    }

    @Test("Removing the last member is answered as a deletion and deletes the group")
    func emptied() async throws {
        try await TestGateway.runWithGroups { gateway, key, upstream in
            _ = await gateway.data(.put, Self.path + "/g", key: key, body: #"{"tokens":["a"]}"#)
            let last = await gateway.data(.post, Self.path + "/g/members/remove", key: key, body: #"{"tokens":["a"]}"#)
            #expect(last.status == 204)
            #expect(last.body.isEmpty)
            #expect(upstream.groupNames.isEmpty)
            #expect(await gateway.data(.get, Self.path + "/g", key: key).status == 404)
        }
    }

    @Test(
        "An invalid group name is refused",
        arguments: ["%", "%zz", "%ff", "a%00b", "a%0Ab", String(repeating: "x", count: 257)]
    )
    func badNames(name: String) async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.data(.put, "\(Self.path)/\(name)", key: key, body: #"{"tokens":["a"]}"#)
            try answer.expectProblem(422, "invalid_field")
        }
    }

    @Test("Canonically equivalent tokens are different devices")
    func alike() async throws {
        try await TestGateway.runWithGroups { gateway, key, upstream in
            let composed = "\u{E9}"
            let decomposed = "e\u{301}"
            let body = #"{"tokens":["\#(composed)","\#(decomposed)","\#(composed)"]}"#
            #expect(await gateway.data(.put, Self.path + "/g", key: key, body: body).status == 201)
            func members() -> [[UInt8]]? { upstream.members(ofGroup: "g")?.map { Array($0.utf8) } }
            #expect(members() == [Array(composed.utf8), Array(decomposed.utf8)])
            let one = #"{"tokens":["\#(composed)"]}"#
            #expect(await gateway.data(.post, Self.path + "/g/members/remove", key: key, body: one).status == 200)
            #expect(members() == [Array(decomposed.utf8)])
            #expect(await gateway.data(.post, Self.path + "/g/members", key: key, body: one).status == 200)
            #expect(members() == [Array(decomposed.utf8), Array(composed.utf8)])
        }
    }

    @Test(
        "FCM's group failures have the codes of the contract",
        arguments: [
            (GroupFailure.Kind.noValidTokens, 422, "no_valid_tokens"),
            (.upstreamCredentials, 502, "upstream_credentials"), (.upstreamUnavailable, 503, "upstream_unavailable"),
            (.upstreamInternal, 502, "upstream_internal"), (.upstreamProtocol, 502, "upstream_protocol"),
            (.invalidField, 422, "invalid_field"),
        ]
    )
    func codes(kind: GroupFailure.Kind, status: Int, code: String) async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            upstream.answer(.failing(.groupNotFound), .failing(kind, retryAfter: 17))
            let answer = await gateway.data(.put, Self.path + "/g", key: key, body: #"{"tokens":["a"]}"#)
            let problem = try answer.expectProblem(status, code)
            #expect(answer.header("Retry-After") == (problem["retryable"] == true ? "17" : nil))
        }
    }

    @Test("Every route reports a failing store as overloaded")
    func refusing() async throws {
        try await TestGateway.run { gateway, key async throws in
            gateway.groupStore.refuse()
            for route in Self.routes {
                let answer = await gateway.data(route.method, Self.path + route.suffix, key: key, body: route.body)
                #expect(try answer.code() == "overloaded", "\(route)")
            }
        }
    }

    @Test("Every change is recorded once with its outcome, without names, tokens or keys")
    func audit() async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            let group = Self.path + "/user-7"
            _ = await gateway.data(.put, group, key: key, body: #"{"tokens":["tok-1","tok-2"]}"#)
            _ = await gateway.data(.post, group + "/members", key: key, body: #"{"tokens":["tok-3"]}"#)
            upstream.answer(.failing(.upstreamCredentials))
            _ = await gateway.data(.post, group + "/members/remove", key: key, body: #"{"tokens":["tok-3"]}"#)
            upstream.answer(.failing(.groupNotFound), .failing(.groupNotFound))
            _ = await gateway.data(.delete, group, key: key)
            try await gateway.settleAudit()
            let list = await gateway.data(.get, "/v1/tenants/demo/audit?target=user-7", key: key)
            let records = (list.value["records"]?.elements ?? []).reversed()
                .map { record in
                    [record["action"], record["outcome"], record["code"], record["recipients"], record["accepted"]]
                }
            #expect(
                records == [
                    ["device_group.put", "accepted", nil, 2, 2], ["device_group.add", "accepted", nil, 1, 1],
                    ["device_group.remove", "rejected", "upstream_credentials", 1, 0],
                    ["device_group.delete", "accepted", nil, 0, 0],
                ]
            )
            #expect(list.value["records"]?.elements.allSatisfy { $0["target_kind"] == "group" } == true)
            for text in ["user-7", "tok-", "key-1"] { #expect(!list.body.contains(text)) }
            #expect(!gateway.logText.contains("tok-") && !gateway.logText.contains("user-7"))
        }
    }

    @Test("Reading a group and the list is recorded")
    func readingIsRecorded() async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            _ = await gateway.data(.put, Self.path + "/g", key: key, body: #"{"tokens":["tok-1"]}"#)
            #expect(await gateway.data(.get, Self.path + "/g", key: key).status == 200)
            #expect(await gateway.data(.get, Self.path, key: key).status == 200)
            let actions = try await gateway.records("", key: key).reversed().compactMap { $0["action"]?.text }
            #expect(
                actions.filter { $0.hasPrefix("device_group.") } == [
                    "device_group.put", "device_group.get", "device_group.list",
                ]
            )
        }
    }

    @Test("Requests are counted by tenant, action and outcome")
    func counted() async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            _ = await gateway.data(.put, Self.path + "/g", key: key, body: #"{"tokens":["a"]}"#)
            upstream.answer(.failing(.upstreamUnavailable))
            _ = await gateway.data(.put, Self.path + "/h", key: key, body: #"{"tokens":["a"]}"#)
            func count(_ outcome: String) throws -> Int64 {
                try gateway.metrics
                    .expectCounter(
                        "fcmgw_device_group_requests_total",
                        [("tenant", "demo"), ("action", "device_group.put"), ("outcome", outcome)]
                    )
                    .totalValue
            }
            let (done, unavailable) = (try count("done"), try count("upstream_unavailable"))
            #expect(done == 1)
            #expect(unavailable == 1)
        }
    }
}
