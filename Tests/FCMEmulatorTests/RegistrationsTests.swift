import FCMEmulator
import Testing

@Suite("Registrations of the fake FCM", .timeLimit(.minutes(10)))
struct RegistrationsTests {
    @Test("A token can be unregistered, replaced and restored, in legacy and v1 alike")
    func control() async throws {
        try await withSender { _, client, token in
            func legacy() async throws -> String { try await client.send(#"{"to":"a"}"#).body }
            func v1() async throws -> String {
                try await client.send(message: #"{"message":{"token":"a"}}"#, token: token).body
            }
            let ended = try await client.control("POST", "registrations", #"{"tokens":["a","b"],"registered":false}"#)
            #expect(ended.body == #"{"unregistered":2}"#)
            #expect(try await legacy().contains(#""error":"NotRegistered""#))
            #expect(try await v1().contains(#""UNREGISTERED""#))
            let list = try await client.send(#"{"registration_ids":["x","b"]}"#).body
            #expect(list.contains(#""success":1,"failure":1"#))

            let canonical = try await client.control("POST", "registrations", #"{"tokens":["a"],"canonical":"c"}"#)
            #expect(canonical.body == #"{"unregistered":1}"#)
            #expect(try await legacy().contains(#""registration_id":"c""#))
            #expect(try await !v1().contains("error"))

            #expect(try await client.control("DELETE", "registrations").status == 204)
            #expect(try await !legacy().contains("registration_id"))
            #expect(try await client.send(#"{"to":"b"}"#).body.contains("message_id"))
        }
    }

    @Test("unregistered_percent fails its share of tokens, the same number each time")
    func share() async throws {
        try await withEmulator { emulator, client in
            let tokens = (0..<1_000).map { "\"device-\($0)\"" }.joined(separator: ",")
            func failures() async throws -> Int {
                let members = try await client.send(#"{"registration_ids":[\#(tokens)]}"#).json()
                return members["failure"] as? Int ?? -1
            }
            #expect(try await failures() == 0)
            _ = try await client.control("POST", "settings", #"{"unregistered_percent":95}"#)
            let some = try await failures()
            #expect((930...970).contains(some))
            #expect(try await failures() == some)
            _ = try await client.control("POST", "settings", #"{"unregistered_percent":100}"#)
            #expect(try await failures() == 1_000)
            emulator.register(["device-7"])
            emulator.reset()
            #expect(try await failures() == 0)
        }
    }

    @Test(
        "An invalid request is refused with a reason",
        arguments: [
            (#"{}"#, "tokens is missing"), (#"{"tokens":["a"]}"#, "registered or canonical is missing"),
            (#"{"tokens":["a"],"registered":false,"canonical":"b"}"#, "canonical is for tokens that are registered"),
            (#"{"tokens":["a"],"canonical":""}"#, "canonical must not be empty"),
            (#"{"tokens":["a"],"registered":1}"#, "registered must be true or false"),
            (#"{"tokens":["a"],"dead":true}"#, "unknown member dead"),
        ]
    )
    func refused(body: String, reason: String) async throws {
        try await withEmulator { _, client in
            let reply = try await client.control("POST", "registrations", body)
            #expect(reply.status == 400)
            #expect(reply.body.contains(reason))
            #expect(try await client.control("GET", "registrations").status == 405)
        }
    }
}
