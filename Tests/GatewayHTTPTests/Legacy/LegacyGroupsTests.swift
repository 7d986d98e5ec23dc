import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import NIOCore
import Testing
import VectorTestKit

@testable import GatewayHTTP

struct LegacyGroupsTests {
    private static let path = "/fcm/notification"

    @Test(
        "A request with the tenant's sender id or none is accepted; another sender id is refused",
        arguments: [
            ("key=", nil, 200), ("Bearer ", nil, 200), ("key=", TestGateway.senderID, 200),
            ("Bearer ", TestGateway.senderID, 200), ("key=", "999", 401),
        ] as [(String, String?, Int)]
    )
    func senderID(scheme: String, senderID: String?, status: Int) async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            try await gateway.setSender()
            let body = #"{"operation":"create","notification_key_name":"n","registration_ids":["r1"]}"#
            var headers = ["Authorization": scheme + key]
            headers["project_id"] = senderID
            let answer = await gateway.data(.post, Self.path, key: nil, body: body, headers: headers)
            #expect(answer.status == status)
            #expect(upstream.requests.count == (status == 200 ? 1 : 0))
            guard status == 200 else { return }
            #expect(answer.header("Content-Type") == "application/json; charset=UTF-8")
            #expect(answer.value == ["notification_key": "key-1"])
        }
    }

    @Test("Groups follow the scenarios of the test vectors, and the gateway's groups match FCM's")
    func scenarios() async throws {
        let vectors = try VectorFile.read("device-groups")
            .map { try JSON(parsing: String(buffer: $0.serialised())) }
            .filter { $0["kind"] == "scenario" }
        #expect(vectors.count == 4)
        for vector in vectors {
            try await TestGateway.runWithGroups { gateway, key, upstream in
                upstream.refuse(tokens: Set((vector["invalid_tokens"]?.elements ?? []).compactMap(\.text)))
                var references: [String: String] = [:]
                for (index, step) in (vector["steps"]?.elements ?? []).enumerated() {
                    let request = try #require(step["request"]).resolving(references)
                    let answer = await gateway.data(
                        request["method"] == "GET" ? .get : .post,
                        Self.path + (request["query"]?.text.map { "?\($0)" } ?? ""),
                        key: key,
                        body: request["body"]?.encoded ?? ""
                    )
                    let at = "\(vector["id"]?.text ?? "") step \(index): \(answer.body)"
                    #expect(answer.status == step["expect"]?["status"]?.int, "\(at)")
                    #expect(step["expect"]?["body"]?.matches(answer.value) == true, "\(at)")
                    if let name = step["save_notification_key_as"]?.text {
                        references[name] = answer.value["notification_key"]?.text
                    }
                }
                // The gateway can't know which tokens FCM dropped silently.
                guard vector["invalid_tokens"] == nil else { return }
                for group in try await gateway.groupStore.groups() {
                    #expect(upstream.members(ofGroup: group.name).map(Set.init) == Set(group.tokens), "\(group.name)")
                    #expect(group.isExact)
                }
                let names = upstream.groupNames
                #expect(try await names == gateway.groupStore.groups().map(\.name))
            }
        }
    }

    @Test("Requests are recorded by pseudonym, with FCM's outcome")
    func recorded() async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            try await gateway.setSender()
            upstream.answer(GroupResult(.success("secret-key"), upstreamCode: "200"), .failing(.groupExists))
            for _ in 0..<2 {
                _ = await gateway.data(
                    .post,
                    Self.path,
                    key: key,
                    body: #"{"operation":"create","notification_key_name":"user-7","registration_ids":["tok-1"]}"#
                )
            }
            try await gateway.settleAudit()
            let list = await gateway.data(.get, "/v1/tenants/demo/audit?action=device_group.put", key: key)
            let records = list.value["records"]?.elements ?? []
            #expect(records.map { $0["outcome"] } == ["rejected", "accepted"])
            #expect(records.first?["code"] == "group_conflict")
            #expect(records.allSatisfy { $0["targets"]?.elements.count == 2 && $0["recipients"] == 1 })
            for text in ["user-7", "tok-1", "secret-key"] { #expect(!list.body.contains(text)) }
            let found = await gateway.data(.get, "/v1/tenants/demo/audit?target=user-7", key: key)
            #expect(found.value["records"]?.elements.count == 2)
        }
    }

    @Test("A change that names only a group's first key is stored, even after newer keys")
    func firstKey() async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            try await gateway.setSender()
            func ask(_ operation: String, _ members: String) async {
                let body = #"{"operation":"\#(operation)","registration_ids":["tok-\#(operation)"],\#(members)}"#
                #expect(await gateway.data(.post, Self.path, key: key, body: body).status == 200)
            }
            upstream.answer(
                GroupResult(.success("first"), upstreamCode: "200"),
                GroupResult(.success("second"), upstreamCode: "200"),
                GroupResult(.success("third"), upstreamCode: "200")
            )
            await ask("create", #""notification_key_name":"g""#)
            await ask("add", #""notification_key_name":"g","notification_key":"first""#)
            await ask("remove", #""notification_key":"first""#)
            let group = try #require(try await gateway.groupStore.groups().first)
            #expect(group.key == "third")
            #expect(group.tokens == ["tok-create", "tok-add"])
        }
    }

    /// Changes the group `g` over the facade, with one token per number.
    private static func change(
        _ operation: String,
        _ numbers: Range<Int>,
        _ gateway: TestGateway,
        _ key: String
    ) async -> Answer {
        let tokens = numbers.map { #""t\#($0)""# }.joined(separator: ",")
        let name = #""notification_key_name":"g","notification_key":"key-1""#
        let body = #"{"operation":"\#(operation)",\#(name),"registration_ids":[\#(tokens)]}"#
        return await gateway.data(.post, Self.path, key: key, body: body)
    }

    @Test("A change beyond 20 members is refused without a call to FCM")
    func tooManyMembers() async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key async throws in
            try await gateway.setSender()
            #expect(await Self.change("create", 0..<15, gateway, key).status == 200)
            #expect(await Self.change("add", 10..<20, gateway, key).status == 200)
            let count = upstream.requests.count
            for round in 1...30 {
                let refused = await Self.change("add", round * 20..<round * 20 + 20, gateway, key)
                #expect(refused.status == 400)
                #expect(refused.value == ["error": "The group would have 40 members; it may have 20"])
            }
            #expect(upstream.requests.count == count)
            #expect(try await gateway.groupStore.groups().first?.members.count == 20)
            let records = try await gateway.records("action=device_group.add", key: key)
            #expect(records.first?["code"] == "group_too_large")
            // Existing members need no room, and a removal frees some.
            #expect(await Self.change("add", 0..<20, gateway, key).status == 200)
            #expect(await Self.change("remove", 0..<1, gateway, key).status == 200)
            #expect(await Self.change("add", 20..<21, gateway, key).status == 200)
            // FCM creates a group only if none of this name exists, so the former members are gone.
            #expect(await Self.change("create", 100..<120, gateway, key).status == 200)
            #expect(try await gateway.groupStore.groups().first?.tokens.contains("t20") == false)
        }
    }

    @Test("Tokens with an unknown outcome count as members until FCM reports on them")
    func openMembers() async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key async throws in
            try await gateway.setSender()
            func fail(_ kind: GroupFailure.Kind) { upstream.answer(.failing(kind)) }
            #expect(await Self.change("create", 0..<5, gateway, key).status == 200)
            fail(.upstreamUnavailable)
            #expect(await Self.change("add", 5..<20, gateway, key).status == 503)
            let count = upstream.requests.count
            for operation in ["add", "create"] {
                #expect(await Self.change(operation, 20..<30, gateway, key).status == 400, "\(operation)")
            }
            #expect(upstream.requests.count == count)
            // FCM knows none of these tokens, so they no longer take room.
            fail(.noValidTokens)
            #expect(await Self.change("add", 5..<15, gateway, key).status == 400)
            #expect(try await gateway.groupStore.groups().first?.members.count == 10)
            #expect(await Self.change("add", 20..<30, gateway, key).status == 200)
            // Failed removals of unknown tokens add no members.
            for round in 1...5 {
                fail(.upstreamUnavailable)
                #expect(await Self.change("remove", round * 100..<round * 100 + 20, gateway, key).status == 503)
            }
            #expect(try await gateway.groupStore.groups().first?.members.count == 20)
        }
    }

    @Test("Tenants that share a sender id have separate groups")
    func sharedSender() async throws {
        let upstream = ScriptedGroupUpstream()
        try await TestGateway.run(groupUpstream: upstream) { gateway, key in
            try await gateway.setSender()
            try await gateway.setSender(tenant: "other")
            _ = await gateway.data(.get, Self.path + "?notification_key_name=g", key: key)
            let other = try await gateway.makeKey(scopes: [.manageDeviceGroups], tenant: "other")
            _ = await gateway.data(.put, "/v1/tenants/other/device-groups/g", key: other, body: #"{"tokens":["a"]}"#)
            #expect(Array(upstream.requests.prefix(2)) == [.lookUp(name: "g"), .lookUp(name: "fcm-gateway/other/g")])
        }
    }
}

extension JSON {
    /// True if an answer matches a vector; `$any` is a matcher.
    fileprivate func matches(_ actual: JSON) -> Bool {
        if self["$any"]?.text == "nonempty_string" { return actual.text?.isEmpty == false }
        guard case .object(let expected) = self, case .object(let members) = actual else { return self == actual }
        return expected.keys == members.keys
            && expected.allSatisfy { key, value in
                members[key].map { value.matches($0) } ?? false
            }
    }

    /// The value with every `{"$ref": name}` replaced.
    fileprivate func resolving(_ references: [String: String]) -> JSON {
        if let name = self["$ref"]?.text { return .string(references[name] ?? "unknown reference") }
        guard case .object(let members) = self else { return self }
        return .object(members.mapValues { $0.resolving(references) })
    }
}
