import Foundation
import NIOCore
import Testing
import VectorTestKit

@testable import FCMEmulator

struct GroupEndpointTests {
    private static let headers = [
        "Authorization: key=AAAA-known", "project_id: 123456789012", "Content-Type: application/json",
    ]

    private static func ask(_ client: RawClient, _ body: String, headers: [String] = Self.headers) async throws
        -> RawReply
    {
        try await client.ask("POST", "/fcm/notification", headers, body: body)
    }

    private static func lookUp(_ client: RawClient, _ query: String) async throws -> RawReply {
        try await client.ask("GET", "/fcm/notification?\(query)", Self.headers)
    }

    private static func key(_ reply: RawReply) throws -> String {
        let members = try JSONValue.members(of: Array(reply.body.utf8))
        return try #require(members.string("notification_key"), "\(reply.body)")
    }

    private static func create(_ client: RawClient, _ name: String, _ tokens: [String]) async throws -> String {
        let list = tokens.map(JSONValue.quoted).joined(separator: ",")
        let body = #"{"operation":"create","notification_key_name":"\#(name)","registration_ids":[\#(list)]}"#
        return try Self.key(await Self.ask(client, body))
    }

    @Test("Scenarios of group requests get the responses of the vectors")
    func scenarios() async throws {
        let vectors = try VectorFile.read("device-groups")
            .compactMap { vector in
                let bytes = Data(vector.serialised().readableBytesView)
                return try JSONSerialization.jsonObject(with: bytes) as? [String: Any]
            }
            .filter { $0["kind"] as? String == "scenario" }
        #expect(vectors.count == 4)
        for vector in vectors {
            let id = vector["id"] as? String ?? ""
            try await withEmulator { emulator, client in
                emulator.refuse(tokens: Set(vector["invalid_tokens"] as? [String] ?? []))
                var keys: [String: String] = [:]
                for (index, step) in (vector["steps"] as? [[String: Any]] ?? []).enumerated() {
                    let request = try #require(step["request"] as? [String: Any])
                    let reply: RawReply
                    if let query = request["query"] as? String {
                        reply = try await Self.lookUp(client, query)
                    } else {
                        var body = try #require(request["body"] as? [String: Any])
                        if let reference = body["notification_key"] as? [String: String] {
                            body["notification_key"] = keys[reference["$ref"] ?? ""]
                        }
                        let data = try JSONSerialization.data(withJSONObject: body)
                        reply = try await Self.ask(client, String(decoding: data, as: UTF8.self))
                    }
                    let expect = try #require(step["expect"] as? [String: Any])
                    #expect(reply.status == expect["status"] as? Int, "\(id) step \(index): \(reply.body)")
                    let members = try JSONValue.members(of: Array(reply.body.utf8))
                    for (name, value) in expect["body"] as? [String: Any] ?? [:] {
                        if let text = value as? String {
                            #expect(members.string(name) == text, "\(id) step \(index)")
                        } else {
                            #expect(members.string(name)?.isEmpty == false, "\(id) step \(index)")
                        }
                    }
                    if let name = step["save_notification_key_as"] as? String {
                        keys[name] = members.string("notification_key")
                    }
                }
            }
        }
    }

    @Test("Every look-up returns a new key, and each key works")
    func keys() async throws {
        try await withEmulator { emulator, client in
            let first = try await Self.create(client, "g", ["a"])
            let second = try Self.key(await Self.lookUp(client, "notification_key_name=g"))
            #expect(first != second)
            for (key, token) in [(first, "b"), (second, "c")] {
                let body = #"{"operation":"add","notification_key":"\#(key)","registration_ids":["\#(token)"]}"#
                #expect(try await Self.ask(client, body).status == 200)
            }
            #expect(emulator.members(ofGroup: "g", senderID: "123456789012") == ["a", "b", "c"])
            #expect(emulator.members(ofGroup: "g", senderID: "1") == nil)
        }
    }

    @Test(
        "A request without valid credentials and sender id gets 401",
        arguments: [
            ["project_id: 1"], ["Authorization: key=AAAA"], ["Authorization: key=AAAA", "project_id: demo"],
            ["Authorization: key=", "project_id: 1"], ["Authorization: Bearer x", "project_id: 1"],
            ["Authorization: Bearer x", "access_token_auth: true", "project_id: 1"],
        ]
    )
    func strangers(headers: [String]) async throws {
        try await withEmulator { emulator, client in
            let body = #"{"operation":"create","notification_key_name":"g","registration_ids":["a"]}"#
            let reply = try await Self.ask(client, body, headers: headers + ["Content-Type: application/json"])
            #expect(reply.status == 401)
            #expect(emulator.groupNames(senderID: "1").isEmpty)
        }
    }

    @Test("An access token is accepted only with access_token_auth")
    func accessToken() async throws {
        try await withSender { emulator, client, token in
            let headers = ["Authorization: Bearer \(token)", "project_id: 1", "Content-Type: application/json"]
            let body = #"{"operation":"create","notification_key_name":"g","registration_ids":["a"]}"#
            let refused = try await Self.ask(client, body, headers: headers)
            #expect(refused.status == 401)
            let taken = try await Self.ask(client, body, headers: headers + ["access_token_auth: true"])
            #expect(taken.status == 200)
        }
    }

    @Test(
        "An invalid or contradictory request is refused",
        arguments: [
            #"{"operation":"create","notification_key_name":"g","notification_key":"k","registration_ids":["a"]}"#,
            #"{"operation":"create","notification_key_name":"g","registration_ids":["a"],"id_token":"x"}"#,
            #"{"operation":"add","notification_key_name":"g","registration_ids":["a"]}"#,
            #"{"operation":"delete","notification_key":"k","registration_ids":["a"]}"#,
            #"{"operation":"create","notification_key_name":"","registration_ids":["a"]}"#,
            #"{"operation":"create","notification_key_name":"g","registration_ids":[]}"#, "operation=create",
            #"{"operation":"add","notification_key":"made-up","registration_ids":["a"]}"#,
        ]
    )
    func refusals(body: String) async throws {
        try await withEmulator { emulator, client in
            let reply = try await Self.ask(client, body)
            #expect(reply.status == 400)
            #expect(try JSONValue.members(of: Array(reply.body.utf8)).string("error")?.isEmpty == false)
            #expect(emulator.groupNames(senderID: "123456789012").isEmpty)
        }
    }

    @Test("A legacy message reaches every member, and the response names those that fail")
    func legacyDelivery() async throws {
        try await withEmulator { emulator, client in
            let key = try await Self.create(client, "g", ["a", "ERROR_NotRegistered", "b"])
            let reply = try await client.send(#"{"to":"\#(key)","data":{"k":"v"}}"#)
            #expect(reply.body == #"{"success":2,"failure":1,"failed_registration_ids":["ERROR_NotRegistered"]}"#)
            #expect(Set(emulator.deliveries().map(\.token)) == ["a", "b"])
            let dryRun = try await client.send(#"{"to":"\#(key)","dry_run":true}"#)
            #expect(dryRun.body.hasPrefix(#"{"success":2,"failure":1"#))
            #expect(emulator.deliveries().count == 2)
            emulator.deleteGroup(named: "g", senderID: "123456789012")
            let dead = try await client.send(#"{"to":"\#(key)"}"#)
            #expect(dead.body.contains(#""results":[{"error":"NotRegistered"}]"#))
        }
    }

    @Test("A v1 message reaches every member, and the response is an empty object")
    func v1Delivery() async throws {
        try await withSender { emulator, client, token in
            let key = try await Self.create(client, "g", ["a", "b"])
            let message = #"{"message":{"token":"\#(key)","data":{"k":"v"}}}"#
            let reply = try await client.send(message: message, token: token)
            #expect(reply.status == 200)
            #expect(reply.body == "{}")
            #expect(Set(emulator.deliveries().map(\.token)) == ["a", "b"])
            emulator.deleteGroup(named: "g", senderID: "123456789012")
            let dead = try await client.send(message: message, token: token)
            #expect(dead.status == 404)
            #expect(dead.body.contains("UNREGISTERED"))
        }
    }

    @Test("The control interface lists and deletes groups, and faults apply to them")
    func control() async throws {
        try await withEmulator { emulator, client in
            _ = try await Self.create(client, "g", ["a"])
            let shown = try await client.control("GET", "groups")
            #expect(shown.body == #"{"groups":[{"name":"g","project_id":"123456789012","tokens":["a"]}]}"#)
            #expect(try await client.control("DELETE", "groups?name=g").status == 400)
            #expect(try await client.control("DELETE", "groups?name=h&project_id=123456789012").status == 404)
            #expect(try await client.control("DELETE", "groups?name=g&project_id=123456789012").status == 204)
            #expect(try await Self.lookUp(client, "notification_key_name=g").status == 400)
            #expect(try await client.control("POST", "invalid-tokens", #"{"tokens":["bad"]}"#).status == 204)
            let body = #"{"operation":"create","notification_key_name":"g","registration_ids":["bad"]}"#
            #expect(try await Self.ask(client, body).body == #"{"error":"no valid registration ids"}"#)
            emulator.addFault(
                Fault(path: "/fcm/notification", token: "a", action: .status(503, body: nil, headers: []))
            )
            #expect(try await Self.lookUp(client, "notification_key_name=g").status == 400)
            let create = #"{"operation":"create","notification_key_name":"g","registration_ids":["a"]}"#
            #expect(try await Self.ask(client, create).status == 503)
            emulator.reset()
            #expect(emulator.groupNames(senderID: "123456789012").isEmpty)
        }
    }
}
