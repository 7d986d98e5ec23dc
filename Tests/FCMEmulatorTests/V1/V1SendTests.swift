import Foundation
import Testing

@testable import FCMEmulator

@Suite("v1 over HTTP", .timeLimit(.minutes(10)))
struct V1SendTests {
    private static let message = #"{"message":{"token":"tok","data":{"k":"v"},"android":{"priority":"HIGH"}}}"#
    private static let path = "/v1/projects/demo/messages:send"

    @Test("A message with an access token is accepted, journaled and delivered")
    func send() async throws {
        try await withSender { emulator, client, token in
            #expect(token.hasPrefix("ya29."))
            let reply = try await client.send(message: Self.message, token: token)
            #expect(reply.status == 200)
            #expect(reply.header("content-type") == "application/json; charset=UTF-8")
            let name = try #require(try reply.json()["name"] as? String)
            #expect(name.wholeMatch(of: /projects\/demo\/messages\/0:[0-9]{16}%[0-9a-f]{16}/) != nil)
            let entry = try #require(emulator.journal().first)
            #expect(entry.path == Self.path)
            #expect(entry.body == Self.message)
            #expect(entry.connection != nil)
            #expect(entry.stream == nil)
            #expect(entry.decision?.deliveredTo == ["tok"])
            #expect(entry.decision?.notes == [])
            let delivery = try #require(emulator.deliveries(token: "tok").first)
            #expect(name.hasSuffix(delivery.messageID))
            #expect(delivery.requestID == entry.id)
            #expect(
                delivery.message
                    == DeliveredMessage(
                        data: ["k": "v"],
                        priority: "high",
                        platforms: ["android": #"{"priority":"HIGH"}"#]
                    )
            )
        }
    }

    @Test("The token endpoint reports the token's lifetime, and tokens expire")
    func expiry() async throws {
        let time = ManualTime()
        try await withSender(settings: EmulatorSettings(tokenLifetimeSeconds: 60), time: time) { _, client, token in
            let form = TestAccount.form(try await TestAccount.assertion())
            let members = try await client.token(form: form).json()
            #expect(members["expires_in"] as? Int == 60)
            #expect(members["token_type"] as? String == "Bearer")
            #expect(try await client.send(message: Self.message, token: token).status == 200)
            time.advance(seconds: 60)
            let reply = try await client.send(message: Self.message, token: token)
            #expect(reply.status == 401)
            #expect(reply.body.contains("ACCESS_TOKEN_EXPIRED"))
            #expect(!reply.body.contains("FcmError"))
        }
    }

    @Test("Tokens can be revoked and accounts removed")
    func revoke() async throws {
        try await withSender { emulator, client, token in
            #expect(try await client.control("DELETE", "access-tokens").status == 204)
            #expect(try await client.send(message: Self.message, token: token).status == 401)
            let form = TestAccount.form(try await TestAccount.assertion())
            #expect(try await client.token(form: form).status == 200)
            #expect(emulator.removeServiceAccount(clientEmail: "sender@demo.example"))
            let refusal = try await client.token(form: form)
            #expect(refusal.status == 400)
            #expect(try refusal.json()["error"] as? String == "invalid_grant")
            #expect(emulator.journal().first?.decision?.reason == "invalid_grant: Invalid grant: account not found")
        }
    }

    @Test("An account created over HTTP survives a reset and can be added again")
    func makeAccount() async throws {
        try await withEmulator { emulator, client in
            let made = try await client.control("POST", "service-accounts", #"{"project_id":"mine"}"#)
            #expect(made.status == 200)
            let file = try ServiceAccountFile(json: made.body)
            #expect(file.projectID == "mine")
            #expect(file.clientEmail == "fcm-sender@mine.iam.gserviceaccount.com")
            #expect(file.tokenURI == "http://localhost/token")
            emulator.reset()
            #expect(emulator.removeServiceAccount(clientEmail: file.clientEmail))
            let again = try await client.control("POST", "service-accounts", #"{"service_account":\#(file.json)}"#)
            #expect(try ServiceAccountFile(json: again.body) == file)
            let own = try await emulator.makeServiceAccount(projectID: "other", clientEmail: "a@b")
            #expect(own.clientEmail == "a@b")
            #expect(own.tokenURI == "http://127.0.0.1:\(client.port)/token")
        }
    }

    @Test("Topics and conditions reach their subscribers, and topic messages have numeric ids")
    func topics() async throws {
        try await withSender { emulator, client, token in
            try emulator.subscribe(["one", "two"], to: "news")
            try emulator.subscribe(["two"], to: "sport")
            let topic = try await client.send(message: #"{"message":{"topic":"news"}}"#, token: token)
            #expect(topic.body.wholeMatch(of: /\{"name":"projects\/demo\/messages\/[1-9][0-9]*"\}/) != nil)
            #expect(emulator.deliveries(topic: "news").map(\.token) == ["two", "one"])
            let condition = "'news' in topics && !('sport' in topics)"
            _ = try await client.send(message: #"{"message":{"condition":"\#(condition)"}}"#, token: token)
            #expect(emulator.deliveries().first?.token == "one")
            #expect(emulator.deliveries().first?.condition == condition)
        }
    }

    @Test("A message with validate_only is answered but not delivered")
    func validateOnly() async throws {
        try await withSender { emulator, client, token in
            let message = #"{"validate_only":true,"message":{"token":"tok"}}"#
            let reply = try await client.send(message: message, token: token)
            #expect(reply.body == #"{"name":"projects/demo/messages/fake_message_id"}"#)
            #expect(emulator.deliveries().isEmpty)
        }
    }

    @Test("A response is sent after the configured latency, which follows the delivery")
    func latency() async throws {
        let clock = StepClock()
        try await withSender(settings: EmulatorSettings(latency: .milliseconds(80)), clock: clock) {
            emulator,
            client,
            token in
            async let reply = client.send(message: Self.message, token: token)
            #expect(await clock.sleeps.first { _ in true } == .milliseconds(80))
            #expect(emulator.deliveries().map(\.token) == ["tok"])
            #expect(try await client.control("GET", "connections").status == 200)
            clock.step()
            let answer = try await reply
            #expect(answer.status == 200)
        }
    }
}
