import Foundation
import Logging
import Testing

@testable import FCMEmulator

@Suite("FCMEmulator", .timeLimit(.minutes(10)))
struct FCMEmulatorTests {
    @Test("A message to a device is accepted, journaled and delivered")
    func device() async throws {
        try await withEmulator { emulator, client in
            let body = #"{"to":"tok","data":{"k":"v"},"priority":"high"}"#
            let reply = try await client.send(body)
            #expect(reply.status == 200)
            #expect(reply.header("content-type") == "application/json; charset=UTF-8")
            #expect(
                reply.body.wholeMatch(
                    of:
                        /\{"multicast_id":[0-9]+,"success":1,"failure":0,"canonical_ids":0,"results":\[\{"message_id":"0:[0-9]{16}%[0-9a-f]{16}"\}\]\}/
                ) != nil
            )
            let entry = try #require(emulator.journal().first)
            #expect(entry.method == "POST")
            #expect(entry.path == "/fcm/send")
            #expect(entry.body == body)
            #expect(entry.headers.contains(HeaderField(name: "Authorization", value: "key=AAAA-known")))
            #expect(entry.headers.contains(HeaderField(name: "Host", value: "localhost")))
            #expect(entry.decision?.status == 200)
            #expect(entry.decision?.body == reply.body)
            #expect(entry.decision?.deliveredTo == ["tok"])
            #expect(entry.decision?.reason == nil)
            let delivery = try #require(emulator.deliveries(token: "tok").first)
            #expect(delivery.message == DeliveredMessage(data: ["k": "v"], priority: "high"))
            #expect(delivery.requestID == entry.id)
            #expect(reply.body.contains(delivery.messageID))
        }
    }

    @Test("Every recipient of a multicast has its own result, in order")
    func multicast() async throws {
        try await withEmulator { emulator, client in
            let tokens = #"["a","ERROR_NotRegistered","","/topics/x","CANONICAL_new","ERROR_Whatever"]"#
            let members = try await client.send(#"{"registration_ids":\#(tokens)}"#).json()
            #expect(members["success"] as? Int == 2)
            #expect(members["failure"] as? Int == 4)
            #expect(members["canonical_ids"] as? Int == 1)
            let results = try #require(members["results"] as? [[String: String]])
            #expect(
                results.map { $0["error"] } == [
                    nil, "NotRegistered", "MissingRegistration", "InvalidRegistration", nil, "Whatever",
                ]
            )
            #expect(results[4]["registration_id"] == "new")
            #expect(emulator.journal().first?.decision?.deliveredTo == ["a", "CANONICAL_new"])
            #expect(emulator.journal().first?.decision?.reason?.contains("NotRegistered, Whatever") == true)
        }
    }

    @Test("Topics and conditions reach their subscribers")
    func topics() async throws {
        try await withEmulator { emulator, client in
            try emulator.subscribe(["one", "two"], to: "news")
            try emulator.subscribe(["two"], to: "sport")
            let topic = try await client.send(#"{"to":"/topics/news","data":{"k":"v"}}"#)
            #expect(topic.body.wholeMatch(of: /\{"message_id":[1-9][0-9]*\}/) != nil)
            #expect(emulator.deliveries(topic: "news").map(\.token) == ["two", "one"])
            _ = try await client.send(#"{"condition":"'news' in topics && 'sport' in topics"}"#)
            #expect(emulator.journal(limit: 1).first?.decision?.deliveredTo == ["two"])
            #expect(
                emulator.deliveries(token: "two").first?.condition == "'news' in topics && 'sport' in topics"
            )
            #expect(throws: EmulatorError.badTopic("/topics/x")) { try emulator.subscribe(["t"], to: "/topics/x") }
        }
    }

    @Test("A dry run is answered and delivers nothing")
    func dryRun() async throws {
        try await withEmulator { emulator, client in
            let reply = try await client.send(#"{"to":"tok","dry_run":true}"#)
            #expect(reply.body.contains(#""results":[{"message_id":"fake_message_id"}]"#))
            #expect(emulator.deliveries().isEmpty)
            #expect(emulator.journal().first?.decision?.deliveredTo == [])
        }
    }

    @Test("Forms are answered in plain text")
    func form() async throws {
        try await withEmulator { emulator, client in
            let form = "registration_id=CANONICAL_new&data.a=1+2"
            let reply = try await client.ask("POST", "/fcm/send", ["authorization: key=any"], body: form)
            #expect(reply.header("content-type") == "text/plain; charset=UTF-8")
            #expect(reply.body.wholeMatch(of: /id=0:[0-9]+%[0-9a-f]{16}\nregistration_id=new/) != nil)
            #expect(emulator.deliveries().first?.message.data == ["a": "1 2"])
        }
    }

    @Test("A refusal has its reason in the response and in the journal")
    func refusal() async throws {
        try await withEmulator { emulator, client in
            let reply = try await client.send(#"{"to":"tok","prioritty":"high"}"#)
            #expect(reply.status == 400)
            #expect(reply.body == #"{"error":"InvalidParameters","reason":"unknown member prioritty"}"#)
            #expect(emulator.journal().first?.decision?.reason == "unknown member prioritty")
            let malformed = try await client.send("{")
            #expect(malformed.status == 400)
            #expect(malformed.header("content-type") == "text/plain; charset=UTF-8")
            #expect(malformed.body.hasPrefix("JSON_PARSING_ERROR: "))
        }
    }

    @Test("Only configured server keys are accepted", arguments: [("good", 200), ("bad", 401), ("", 401)])
    func serverKeys(key: String, status: Int) async throws {
        let configuration = EmulatorConfiguration(port: 0, serverKeys: ["good"])
        try await withEmulator(configuration) { _, client in
            let request = RawClient.request("POST", "/fcm/send", json: #"{"to":"t"}"#, key: key)
            let reply = try await client.exchange(request)
            #expect(reply.status == status)
        }
    }

    @Test("Other methods and paths are refused and journaled")
    func misdirected() async throws {
        try await withEmulator { emulator, client in
            let method = try await client.exchange(RawClient.request("GET", "/fcm/send", json: ""))
            #expect(method.status == 405)
            #expect(method.header("allow") == "POST")
            let path = try await client.exchange(RawClient.request("POST", "/fcm/sned?x=1", json: "{}"))
            #expect(path.status == 404)
            #expect(emulator.journal().map(\.path) == ["/fcm/sned?x=1", "/fcm/send"])
        }
    }

    @Test("A body over the limit is refused")
    func tooLarge() async throws {
        var configuration = EmulatorConfiguration(port: 0)
        configuration.maxBodyBytes = 10
        try await withEmulator(configuration) { emulator, client in
            let reply = try await client.send(#"{"to":"1234567890"}"#)
            #expect(reply.status == 413)
            #expect(emulator.journal().first?.decision?.reason == "the body has more than 10 bytes")
        }
    }

    @Test("A connection serves one request after another")
    func keepAlive() async throws {
        try await withEmulator { emulator, client in
            let first = RawClient.request("POST", "/fcm/send", json: #"{"to":"1"}"#, connection: "keep-alive")
            let second = RawClient.request("POST", "/fcm/send", json: #"{"to":"2"}"#)
            let reply = try await client.exchange(first + second)
            #expect(reply.text.split(separator: "HTTP/1.1 200").count == 2)
            #expect(emulator.deliveries().map(\.token) == ["2", "1"])
        }
    }

    @Test("An occupied port fails run and boundPort")
    func portTaken() async throws {
        try await withEmulator { _, client in
            let second = FCMEmulator(
                configuration: EmulatorConfiguration(port: client.port),
                logger: Logger(label: "second") { _ in SwiftLogNoOpLogHandler() }
            )
            let port = Task { try await second.boundPort() }
            await #expect(throws: (any Error).self) { try await second.run() }
            await #expect(throws: (any Error).self) { try await port.value }
            await #expect(throws: EmulatorError.alreadyRun) { try await second.run() }
        }
    }

    @Test("Cancelling the task ends boundPort")
    func portCancelled() async throws {
        let emulator = FCMEmulator(logger: Logger(label: "idle") { _ in SwiftLogNoOpLogHandler() })
        await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask { try await emulator.boundPort() }
            group.cancelAll()
            await #expect(throws: CancellationError.self) { try await group.next() }
        }
    }
}
