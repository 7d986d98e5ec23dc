import FCMEmulator
import Foundation
import Testing

@Suite("Control routes", .timeLimit(.minutes(10)))
struct ControlRoutesTests {
    @Test("The journal lists the newest requests first, without control requests")
    func journal() async throws {
        try await withEmulator { _, client in
            for token in ["1", "2", "3"] { _ = try await client.send(#"{"to":"\#(token)"}"#) }
            _ = try await client.control("GET", "journal")
            let members = try await client.control("GET", "journal?limit=2").json()
            let entries = try #require(members["entries"] as? [[String: Any]])
            #expect(entries.map { $0["body"] as? String } == [#"{"to":"3"}"#, #"{"to":"2"}"#])
            let entry = try #require(entries.first)
            #expect(entry["id"] as? Int == 3)
            #expect(entry["method"] as? String == "POST")
            #expect(entry["path"] as? String == "/fcm/send")
            #expect((entry["time"] as? String)?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
            let headers = try #require(entry["headers"] as? [[String: String]])
            #expect(headers.contains(["name": "Authorization", "value": "key=AAAA-known"]))
            let decision = try #require(entry["decision"] as? [String: Any])
            #expect(decision["status"] as? Int == 200)
            #expect(decision["delivered_to"] as? [String] == ["3"])
            #expect((decision["body"] as? String)?.contains("multicast_id") == true)
        }
    }

    @Test("Subscriptions can be made over HTTP, and deliveries read by token and topic")
    func subscriptions() async throws {
        try await withEmulator { _, client in
            let made = try await client.control("POST", "subscriptions", #"{"topic":"news","tokens":["a:1","b"]}"#)
            #expect(made.body == #"{"subscribers":2,"topic":"news"}"#)
            _ = try await client.send(#"{"to":"/topics/news","data":{"k":"v"}}"#)
            _ = try await client.send(#"{"to":"a:1"}"#)
            let byToken = try await Self.deliveries(client, "deliveries?token=a%3A1")
            #expect(byToken.count == 2)
            let byTopic = try await Self.deliveries(client, "deliveries?topic=news&token=b")
            #expect(byTopic.count == 1)
            #expect(byTopic.first?["token"] as? String == "b")
            #expect(byTopic.first?["topic"] as? String == "news")
            let message = try #require(byTopic.first?["message"] as? [String: Any])
            #expect(message["data"] as? [String: String] == ["k": "v"])
            #expect(try await Self.deliveries(client, "deliveries").count == 3)
        }
    }

    private static func deliveries(_ client: RawClient, _ path: String) async throws -> [[String: Any]] {
        try await client.control("GET", path).json()["deliveries"] as? [[String: Any]] ?? []
    }

    @Test("Faults can be added and deleted over HTTP")
    func faults() async throws {
        try await withEmulator { _, client in
            let fault = #"{"match":{"path":"/fcm/send","token":"t"},"times":1,"action":{"type":"status","status":503}}"#
            let statuses = [
                try await client.control("POST", "faults", fault).status,
                try await client.send(#"{"registration_ids":["s","t"]}"#).status,
                try await client.send(#"{"registration_ids":["s","t"]}"#).status,
                try await client.control("POST", "faults", fault).status,
                try await client.control("DELETE", "faults").status,
                try await client.send(#"{"to":"t"}"#).status,
            ]
            #expect(statuses == [204, 503, 200, 204, 204, 200])
        }
    }

    @Test("Deleting the state removes journal, deliveries, subscriptions and faults")
    func state() async throws {
        try await withEmulator { emulator, client in
            try emulator.subscribe(["a"], to: "news")
            emulator.addFault(Fault(path: "/other", action: .reset))
            _ = try await client.send(#"{"to":"/topics/news"}"#)
            #expect(try await client.control("DELETE", "state").status == 204)
            #expect(emulator.journal().isEmpty)
            #expect(emulator.deliveries().isEmpty)
            _ = try await client.send(#"{"to":"/topics/news"}"#)
            #expect(emulator.deliveries().isEmpty)
            #expect(try await client.exchange(RawClient.request("GET", "/other", json: "")).status == 404)
        }
    }

    @Test(
        "Invalid control requests get an error message and no journal entry",
        arguments: [
            ("GET", "nothing", "", 404, "nothing is served at /_emulator/nothing"),
            ("DELETE", "journal", "", 405, "DELETE is not allowed here, use GET"),
            ("GET", "journal?limit=x", "", 400, "limit must be an integer in 1 to 1000000"),
            ("GET", "journal?limt=1", "", 400, "unknown query parameter limt"),
            ("GET", "deliveries?token=a&token=b", "", 400, "token is repeated"),
            ("POST", "subscriptions", #"{"topic":"a"}"#, 400, "topic and tokens are needed"),
            (
                "POST", "subscriptions", #"{"topic":"/topics/a","tokens":[]}"#, 400,
                "topic must be a topic's name, without /topics/"
            ),
            (
                "POST", "subscriptions", #"{"topic":"a","tokens":[""]}"#, 400,
                "tokens must hold strings that are not empty"
            ),
            ("POST", "faults", "", 400, "the body is not a JSON object: the text ends at byte 0"),
            (
                "POST", "faults", #"{"action":{"type":"goaway","ms":1}}"#, 400, "unknown member action.ms"
            ),
            ("GET", "goaway", "", 405, "GET is not allowed here, use POST"),
            ("POST", "service-accounts", "{}", 400, "project_id is missing"),
            ("POST", "service-accounts", #"{"service_account":{}}"#, 400, "type must be service_account"),
            ("DELETE", "service-accounts", "", 400, "client_email is missing"),
            ("DELETE", "service-accounts?client_email=a%40b", "", 404, "there is no account a@b"),
            ("POST", "settings", #"{"latency":1}"#, 400, "unknown member latency"),
            (
                "POST", "settings", #"{"max_concurrent_streams":0}"#, 400,
                "max_concurrent_streams must be an integer in 1 to 1000000"
            ),
        ]
    )
    func wrong(method: String, path: String, body: String, status: Int, message: String) async throws {
        try await withEmulator { emulator, client in
            let reply = try await client.control(method, path, body)
            #expect(reply.status == status)
            #expect(reply.header("content-type") == "application/json; charset=UTF-8")
            #expect(try reply.json()["error"] as? String == message)
            #expect(emulator.journal().isEmpty)
        }
    }
}
