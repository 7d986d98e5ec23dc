import FCMEmulator
import Foundation
import Testing

@Suite("Topic subscriptions over HTTP", .timeLimit(.minutes(10)))
struct TopicSubscriptionTests {
    private static let parent = "/v1/projects/demo/registrations/a%3Ab/topicSubscriptions"

    private func ask(
        _ client: RawClient,
        _ method: String,
        _ path: String,
        _ authorization: [String],
        body: String = ""
    ) async throws -> RawReply {
        try await client.ask(method, path, authorization.map { "Authorization: \($0)" }, body: body)
    }

    private static let key = ["key=AAAA-known"]

    private func bearer(_ token: String) -> [String] { ["Bearer \(token)\r\naccess_token_auth: true"] }

    @Test("Batches subscribe and unsubscribe devices, and a look-up lists a device's topics")
    func batch() async throws {
        let time = ManualTime()
        try await withEmulator(time: time) { emulator, client in
            let day = time.now.formatted(Date.ISO8601FormatStyle().year().month().day())
            let body = #"{"to":"/topics/news","registration_tokens":["t1","ERROR_NOT_FOUND","t2"]}"#
            let add = try await self.ask(client, "POST", "/iid/v1:batchAdd", Self.key, body: body)
            #expect(add.status == 200)
            #expect(add.body == #"{"results":[{},{"error":"NOT_FOUND"},{}]}"#)
            #expect(emulator.topics(of: "t1") == ["news"])
            let remove = #"{"to":"/topics/news","registration_tokens":["t2","t3"]}"#
            let removed = try await self.ask(client, "POST", "/iid/v1:batchRemove", Self.key, body: remove)
            #expect(removed.body == #"{"results":[{},{}]}"#)
            #expect(emulator.topics(of: "t2") == [])
            let info = try await self.ask(client, "GET", "/iid/info/t1?details=true", Self.key)
            #expect(info.body.hasSuffix(#","rel":{"topics":{"news":{"addDate":"\#(day)"}}}}"#))
            let plain = try await self.ask(client, "GET", "/iid/info/t1", Self.key)
            #expect(try plain.json()["platform"] as? String == "ANDROID")
            #expect(try plain.json()["rel"] == nil)
            let none = try await self.ask(client, "GET", "/iid/info/t2?details=true", Self.key)
            #expect(try none.json()["rel"] == nil)
            #expect(emulator.journal().map(\.path).contains("/iid/v1:batchAdd"))
            #expect(emulator.journal().last?.decision?.reason == "refused devices: NOT_FOUND")
        }
    }

    @Test("A single device is subscribed and unsubscribed by its own path")
    func relation() async throws {
        try await withEmulator { emulator, client in
            let path = "/iid/v1/a%3Ab/rel/topics/news"
            let added = try await self.ask(client, "POST", path, Self.key)
            #expect(added.body == "{}")
            #expect(emulator.topics(of: "a:b") == ["news"])
            #expect(try await self.ask(client, "DELETE", path, Self.key).body == "{}")
            #expect(emulator.topics(of: "a:b") == [])
            let dead = try await self.ask(client, "POST", "/iid/v1/ERROR_NotRegistered/rel/topics/news", Self.key)
            #expect(dead.status == 404)
        }
    }

    @Test(
        "A token's text selects its error",
        arguments: [
            ("ERROR_NotRegistered", "NOT_FOUND", 404), ("ERROR_UNREGISTERED", "NOT_FOUND", 404),
            ("ERROR_InvalidRegistration", "INVALID_ARGUMENT", 400), ("", "INVALID_ARGUMENT", 400),
            ("ERROR_MismatchSenderId", "PERMISSION_DENIED", 403), ("ERROR_QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED", 429),
            ("ERROR_Unavailable", "DEADLINE_EXCEEDED", 503), ("ERROR_INTERNAL", "INTERNAL", 500),
            ("ERROR_TOO_MANY_TOPICS", "TOO_MANY_TOPICS", 400), ("ERROR_UNKNOWN-7", "UNKNOWN", 500),
        ]
    )
    func scripted(token: String, error: String, status: Int) async throws {
        try await withEmulator { _, client in
            let body = #"{"to":"/topics/news","registration_tokens":["\#(token)"]}"#
            let add = try await self.ask(client, "POST", "/iid/v1:batchAdd", Self.key, body: body)
            #expect(add.body == #"{"results":[{"error":"\#(error)"}]}"#)
            let info = try await self.ask(client, "GET", "/iid/info/\(token)", Self.key)
            #expect(info.status == status)
        }
    }

    @Test(
        "An invalid Instance ID request is refused with a reason",
        arguments: [
            ("POST", "/iid/v1:batchAdd", [], "", 401), ("POST", "/iid/v1:batchAdd", ["Bearer nobody"], "", 401),
            ("POST", "/iid/v1:batchAdd", ["key="], "", 401), ("GET", "/iid/v1:batchAdd", Self.key, "", 400),
            ("POST", "/iid/v1:batchAdd", Self.key, "x", 400),
            ("POST", "/iid/v1:batchAdd", Self.key, #"{"registration_tokens":["t"]}"#, 400),
            ("POST", "/iid/v1:batchAdd", Self.key, #"{"to":"news","registration_tokens":["t"]}"#, 400),
            ("POST", "/iid/v1:batchAdd", Self.key, #"{"to":"/topics/a b","registration_tokens":["t"]}"#, 400),
            ("POST", "/iid/v1:batchAdd", Self.key, #"{"to":"/topics/a","registration_tokens":[]}"#, 400),
            ("POST", "/iid/v1:batchAdd", Self.key, #"{"to":"/topics/a","registration_tokens":[1]}"#, 400),
        ]
    )
    func refused(method: String, path: String, authorization: [String], body: String, status: Int) async throws {
        try await withEmulator { emulator, client in
            let reply = try await self.ask(client, method, path, authorization, body: body)
            #expect(reply.status == status)
            #expect(try reply.json()["error"] is String)
            #expect(emulator.journal().first?.decision?.reason?.isEmpty == false)
        }
    }

    @Test("The Instance ID API accepts an access token only with access_token_auth")
    func accessToken() async throws {
        try await withSender { emulator, client, token in
            let body = #"{"to":"/topics/news","registration_tokens":["t"]}"#
            let plain = try await self.ask(client, "POST", "/iid/v1:batchAdd", ["Bearer \(token)"], body: body)
            #expect(plain.status == 401)
            let announced = try await self.ask(client, "POST", "/iid/v1:batchAdd", self.bearer(token), body: body)
            #expect(announced.status == 200)
            emulator.revokeAccessTokens()
            let revoked = try await self.ask(client, "POST", "/iid/v1:batchAdd", self.bearer(token), body: body)
            #expect(revoked.status == 401)
        }
    }

    @Test("v1 creates, lists and deletes subscriptions")
    func v1() async throws {
        try await withSender { emulator, client, token in
            let bearer = ["Bearer \(token)"]
            let add = try await self.ask(client, "POST", Self.parent + "?topic_name=news", bearer, body: "{}")
            #expect(add.status == 200)
            let name = "projects/demo/registrations/a:b/topicSubscriptions/news"
            #expect(try add.json()["name"] as? String == name)
            #expect(try add.json()["topicName"] as? String == "news")
            #expect(try (add.json()["createTime"] as? String)?.hasSuffix("Z") == true)
            let twice = try await self.ask(client, "POST", Self.parent + "?topicName=news", bearer, body: "{}")
            #expect(twice.status == 409)
            #expect(twice.body.contains("ALREADY_EXISTS"))
            try emulator.subscribe(["a:b"], to: "zebra")
            let first = try await self.ask(client, "GET", Self.parent + "?page_size=1", bearer).json()
            #expect((first["topicSubscriptions"] as? [[String: String]])?.map { $0["topicName"] } == ["news"])
            let next = try #require(first["nextPageToken"] as? String)
            let rest = try await self.ask(client, "GET", Self.parent + "?page_token=\(next)", bearer).json()
            #expect((rest["topicSubscriptions"] as? [[String: String]])?.map { $0["topicName"] } == ["zebra"])
            #expect(rest["nextPageToken"] == nil)
            #expect(try await self.ask(client, "DELETE", Self.parent + "/news", bearer).body == "{}")
            #expect(try await self.ask(client, "DELETE", Self.parent + "/news", bearer).status == 404)
            let missing = try await self.ask(client, "DELETE", Self.parent + "/news?allow_missing=true", bearer)
            #expect(missing.status == 200)
            #expect(emulator.topics(of: "a:b") == ["zebra"])
        }
    }

    @Test(
        "v1 refuses invalid requests with Google's errors",
        arguments: [
            ("POST", "/v1/projects/demo/registrations/t/topicSubscriptions", "{}", 400),
            ("POST", "/v1/projects/demo/registrations/t/topicSubscriptions?topic_name=a%20b", "{}", 400),
            ("POST", "/v1/projects/demo/registrations/t/topicSubscriptions?topic_name=a", "", 400),
            ("POST", "/v1/projects/nobodys/registrations/t/topicSubscriptions?topic_name=a", "{}", 404),
            ("PUT", "/v1/projects/demo/registrations/t/topicSubscriptions?topic_name=a", "{}", 404),
            ("DELETE", "/v1/projects/demo/registrations/t/topicSubscriptions/a", #"{"x":1}"#, 400),
            ("GET", "/v1/projects/demo/registrations/t/topicSubscriptions?page_size=0", "", 400),
            ("POST", "/v1/projects/demo/registrations/ERROR_UNREGISTERED/topicSubscriptions?topic_name=a", "{}", 404),
            (
                "POST", "/v1/projects/demo/registrations/ERROR_TOO_MANY_TOPICS/topicSubscriptions?topic_name=a", "{}",
                400
            ),
        ]
    )
    func v1Refused(method: String, path: String, body: String, status: Int) async throws {
        try await withSender { _, client, token in
            let reply = try await self.ask(client, method, path, ["Bearer \(token)"], body: body)
            #expect(reply.status == status)
            let error = try #require(try reply.json()["error"] as? [String: Any])
            #expect(error["code"] as? Int == status)
            let bare = try await self.ask(client, method, path, [], body: body)
            #expect(bare.status == 401)
        }
    }

    @Test("Faults match devices in bodies and in paths")
    func faults() async throws {
        try await withEmulator { emulator, client in
            let body = #"{"to":"/topics/news","registration_tokens":["x","a:b"]}"#
            for _ in 0..<4 { emulator.addFault(Fault(token: "a:b", action: .page(502))) }
            let requests = [
                ("POST", "/iid/v1:batchAdd", body), ("GET", "/iid/info/a%3Ab", ""),
                ("POST", "/iid/v1/a:b/rel/topics/news", ""), ("GET", Self.parent, ""),
            ]
            for (method, path, body) in requests {
                let reply = try await self.ask(client, method, path, Self.key, body: body)
                #expect(reply.status == 502, "\(path)")
            }
            let last = try await self.ask(client, "GET", Self.parent, Self.key)
            #expect(last.status == 401)
        }
    }
}
