import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct GroupSendTests {
    private static let body = #"{"device_group":"g","data":{"k":"v"}}"#

    private static func put(_ gateway: TestGateway, _ key: String, tokens: String = #"["a","b"]"#) async {
        _ = await gateway.data(.put, "/v1/tenants/demo/device-groups/g", key: key, body: #"{"tokens":\#(tokens)}"#)
    }

    @Test("A send to a group uses the known key and returns the failed members")
    func byName() async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: groups) { gateway, key async throws in
            await Self.put(gateway, key)
            let count = groups.requests.count
            gateway.answer(.group(1, 1, failed: ["b"]))
            let answer = await gateway.send(Self.body, key: key)
            #expect(answer.status == 200)
            #expect(gateway.upstream.calls.map(\.target) == [.notificationKey("key-1")])
            #expect(groups.requests.count == count)
            #expect(try await gateway.records("action=message.send&target=g", key: key).count == 1)
            #expect(
                answer.value.without("id") == [
                    "accepted": 1, "rejected": 1,
                    "results": [
                        [
                            "token": "b", "status": "rejected", "code": "upstream_unavailable", "retryable": true,
                            "action": "wait",
                        ]
                    ],
                ]
            )
        }
    }

    @Test("Over v1, which returns no counts, the known members are counted, by name and by key on the facade")
    func v1Counts() async throws {
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.v1)
            await Self.put(gateway, key)
            let empty = SendResult.group(1, 0)
            gateway.answer(empty, empty, empty)
            #expect(await gateway.send(Self.body, key: key).value["accepted"] == 2)
            let facade = await gateway.legacy(
                #"{"to":"key-1"}"#,
                key: key,
                headers: ["Content-Type": "application/json"]
            )
            #expect(facade.value == ["success": 2, "failure": 0])
            let unknown = await gateway.legacy(
                #"{"to":"key-2"}"#,
                key: key,
                headers: ["Content-Type": "application/json"]
            )
            #expect(unknown.value == ["success": 1, "failure": 0])
        }
    }

    @Test("An unknown group name is not found, and FCM is asked again until it knows the group")
    func unknown() async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: groups) { gateway, key async throws in
            let answer = await gateway.send(Self.body, key: key)
            #expect(answer.status == 404)
            #expect(try answer.faults() == ["/device_group: not_found"])
            #expect(gateway.upstream.calls.isEmpty)
            #expect(groups.requests == [.lookUp(name: "g")])
            #expect(try await gateway.groupStore.groups().isEmpty)
            // FCM now knows the group: it is asked once more and never again.
            groups.answer(GroupResult(.success("key-1"), upstreamCode: "200"))
            for _ in 0..<3 { #expect(await gateway.send(Self.body, key: key).status == 200) }
            #expect(groups.requests.count == 2)
        }
    }

    @Test("FCM is not asked if the key lacks the scope or the tenant has no quota")
    func guarded() async throws {
        let groups = ScriptedGroupUpstream()
        let policy = try #require(RatePolicy(rate: 1, periodSeconds: 60, burst: 1))
        try await TestGateway.run(limits: LimitPolicies(tenant: [policy]), groupUpstream: groups) { gateway, key in
            let other = try await gateway.makeKey(scopes: [.manageDeviceGroups])
            #expect(await gateway.send(Self.body, key: other).status == 403)
            #expect(groups.requests.isEmpty)
            _ = await gateway.send(#"{"token":"t"}"#, key: key)
            _ = await gateway.send(#"{"token":"t"}"#, key: key)
            let count = groups.requests.count
            #expect(await gateway.send(Self.body, key: key).status == 429)
            #expect(groups.requests.count == count)
        }
    }

    @Test("A group's name and all its known keys count as one device on every surface")
    func oneUnderAllKeys() async throws {
        let groups = ScriptedGroupUpstream()
        let policy = try #require(RatePolicy(rate: 1, periodSeconds: 3_600, burst: 5))
        try await TestGateway.run(limits: LimitPolicies(device: [policy]), groupUpstream: groups) { gateway, key in
            try await gateway.setSender()
            await Self.put(gateway, key)
            for number in 2...4 {
                groups.answer(GroupResult(.success("key-\(number)"), upstreamCode: "200"))
                let found = await gateway.data(.get, "/fcm/notification?notification_key_name=g", key: key)
                #expect(found.value["notification_key"]?.text == "key-\(number)")
            }
            #expect(await gateway.send(Self.body, key: key).status == 200)
            #expect(await gateway.send(#"{"token":"key-1"}"#, key: key).status == 200)
            #expect(await gateway.send(#"{"tokens":["other","key-2"]}"#, key: key).value["accepted"] == 2)
            #expect(await gateway.legacy(#"{"to":"key-3"}"#, key: key).value["failure"] == 0)
            #expect(await gateway.v1(#"{"message":{"token":"key-4"}}"#, key: key, project: "demo").status == 200)

            let count = gateway.upstream.calls.count
            let named = await gateway.send(Self.body, key: key)
            #expect(named.status == 429)
            #expect(named.header("Retry-After") == "3600")
            for number in 1...4 {
                let answer = await gateway.send(#"{"token":"key-\#(number)"}"#, key: key)
                #expect(try answer.code() == "device_rate_exceeded", "key-\(number)")
            }
            let list = await gateway.send(#"{"tokens":["another","key-2"]}"#, key: key).value
            #expect(list["results"]?[0]?["status"] == "accepted")
            #expect(list["results"]?[1]?["code"] == "device_rate_exceeded")
            // A key that the gateway does not know counts as a separate device.
            #expect(await gateway.send(#"{"token":"key-5"}"#, key: key).status == 200)
            #expect(gateway.upstream.calls.count == count + 2)
        }
    }

    @Test("Members are charged for messages to their groups; if one is over its limit, none is charged")
    func members() async throws {
        let groups = ScriptedGroupUpstream()
        let policy = try #require(RatePolicy(rate: 1, periodSeconds: 3_600, burst: 2))
        try await TestGateway.run(limits: LimitPolicies(device: [policy]), groupUpstream: groups) {
            gateway,
            key async throws in
            for number in 1...5 {
                groups.answer(GroupResult(.success("key-\(number)"), upstreamCode: "200"))
                _ = await gateway.data(
                    .put,
                    "/v1/tenants/demo/device-groups/g\(number)",
                    key: key,
                    body: #"{"tokens":["a","b\#(number)"]}"#
                )
            }
            func send(_ number: Int) async -> Answer {
                await gateway.send(#"{"device_group":"g\#(number)","data":{"k":"v"}}"#, key: key)
            }
            #expect(await send(1).status == 200)
            #expect(await send(2).status == 200)
            for number in 1...5 {
                let refused = await send(number)
                #expect(try refused.code() == "device_rate_exceeded")
                #expect(refused.header("Retry-After") == "3600")
            }
            #expect(await gateway.send(#"{"token":"a"}"#, key: key).status == 429)
            // The refusals cost the other member nothing.
            for _ in 1...2 { #expect(await gateway.send(#"{"token":"b5"}"#, key: key).status == 200) }
        }
    }

    @Test("A tenant without quota causes no group look-ups and gets the wait for all its recipients")
    func noQuota() async throws {
        let policy = try #require(RatePolicy(rate: 1, periodSeconds: 60, burst: 3))
        try await TestGateway.run(limits: LimitPolicies(tenant: [policy])) { gateway, key async throws in
            await Self.put(gateway, key)
            for _ in 0..<2 { #expect(await gateway.send(#"{"token":"t"}"#, key: key).status == 200) }
            let count = gateway.groupStore.lookUps.count
            let bodies = [#"{"token":"key-1"}"#: "60", Self.body: "60", #"{"tokens":["key-1","t"]}"#: "120"]
            for (body, wait) in bodies {
                let refused = await gateway.send(body, key: key)
                #expect(try refused.code() == "tenant_rate_exceeded", "\(body)")
                #expect(refused.header("Retry-After") == wait, "\(body)")
                #expect(refused.header("RateLimit")?.contains("r=0") == true, "\(body)")
            }
            #expect(gateway.groupStore.lookUps.count == count)
        }
    }

    @Test("A list with keys of more than 20 groups is refused whole: at its field by REST, per token by legacy")
    func tooManyGroups() async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: groups) { gateway, key async throws in
            for number in 1...21 {
                groups.answer(GroupResult(.success("key-\(number)"), upstreamCode: "200"))
                let path = "/v1/tenants/demo/device-groups/g\(number)"
                _ = await gateway.data(.put, path, key: key, body: #"{"tokens":["a"]}"#)
            }
            let keys = (1...21).map { #""key-\#($0)""# }.joined(separator: ",")
            let refused = await gateway.send(#"{"tokens":[\#(keys)]}"#, key: key)
            #expect(refused.status == 422)
            #expect(try refused.faults() == ["/tokens: invalid_target"])
            let facade = await gateway.legacy(
                #"{"registration_ids":[\#(keys)]}"#,
                key: key,
                headers: ["Content-Type": "application/json"]
            )
            #expect(facade.status == 200)
            #expect(facade.value["failure"] == 21)
            // On `InvalidRegistration` some clients would delete all tokens of the list.
            #expect(facade.value["results"]?.elements.allSatisfy { $0 == ["error": "InvalidParameters"] } == true)
            #expect(gateway.upstream.calls.isEmpty)
            let fewer = keys.split(separator: ",").dropLast().joined(separator: ",")
            #expect(await gateway.send(#"{"tokens":[\#(fewer),"t"]}"#, key: key).value["accepted"] == 21)
        }
    }

    @Test("A key that FCM no longer accepts is dropped, and the next send looks up another")
    func deadKey() async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: groups) { gateway, key in
            await Self.put(gateway, key)
            gateway.answer(.rejecting(Rejection(code: .unregistered)))
            #expect(await gateway.send(Self.body, key: key).status == 410)
            groups.answer(GroupResult(.success("key-2"), upstreamCode: "200"))
            #expect(await gateway.send(Self.body, key: key).status == 200)
            #expect(gateway.upstream.calls.last?.target == .notificationKey("key-2"))
        }
    }

    @Test("A failed group look-up fails the send with FCM's delay")
    func trouble() async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: groups) { gateway, key in
            groups.answer(.failing(.upstreamUnavailable, retryAfter: 9))
            let answer = await gateway.send(Self.body, key: key)
            #expect(answer.status == 503)
            #expect(answer.header("Retry-After") == "9")
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("An explanation shows the request to a known group and never calls FCM")
    func explained() async throws {
        let groups = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: groups) { gateway, key async throws in
            let path = "/v1/tenants/demo/messages/explain"
            let unknown = await gateway.data(.post, path, key: key, body: Self.body)
            #expect(try unknown.code() == "not_found")
            #expect(groups.requests.isEmpty)
            await Self.put(gateway, key)
            let count = groups.requests.count
            let known = await gateway.data(.post, path, key: key, body: Self.body)
            #expect(known.status == 200)
            #expect(known.value["requests"]?[0]?["body"]?["to"] == "key-1")
            #expect(known.value["fields"]?[0] == ["pointer": "/device_group", "becomes": ["/to"]])
            #expect(groups.requests.count == count)
            #expect(gateway.upstream.calls.isEmpty)
        }
    }
}
