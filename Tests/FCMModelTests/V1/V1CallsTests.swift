import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("V1Calls")
struct V1CallsTests {
    private static let now = 1_700_000_000

    @Test("Legacy requests become the v1 calls of the vectors", arguments: try TranslationVector.all())
    func vectors(vector: TranslationVector) throws {
        let request = try LegacyRequestDecoder.decode(vector.body)
        #expect(request.localErrors.mapValues(\.rawValue) == vector.localErrors)
        let calls = V1Calls(request.message, to: try #require(request.sentTarget), now: vector.now)
        #expect(calls.count == vector.calls.count)
        for (index, expected) in vector.calls.enumerated() where index < calls.count {
            let body = try VectorJSON(parsing: calls.body(at: index))
            #expect(expected.mismatches(in: body) == [])
        }
    }

    @Test("The example is encoded byte for byte")
    func example() throws {
        let request = try LegacyRequestDecoder.decode(
            ByteBuffer(
                string: #"""
                    {"to": "/topics/news", "priority": "high", "time_to_live": 60, "collapse_key": "k", "dry_run": true,
                     "notification": {"title": "T", "body_loc_key": "b", "body_loc_args": "[\"x\"]", "badge": "3",
                      "click_action": "https://example.com/"},
                     "data": {"n": 1}}
                    """#
            )
        )
        let expected =
            #"{"validate_only":true,"message":{"topic":"news","data":{"n":"1"},"notification":{"title":"T"},"#
            + #""android":{"collapse_key":"k","priority":"HIGH","ttl":"60s","#
            + #""notification":{"body_loc_key":"b","click_action":"https://example.com/","body_loc_args":["x"]}},"#
            + #""apns":{"headers":{"apns-expiration":"1700000060","apns-collapse-id":"k","apns-priority":"10"},"#
            + #""payload":{"aps":{"alert":{"title":"T","loc-key":"b","loc-args":["x"]},"badge":3,"#
            + #""category":"https://example.com/"}}},"#
            + #""webpush":{"headers":{"TTL":"60","Urgency":"high"},"fcm_options":{"link":"https://example.com/"}}}}"#
        let body = V1Calls(request.message, to: request.target, now: Self.now).body(at: 0)
        #expect(String(buffer: body) == expected)
    }

    @Test("A notification of arguments without their key is omitted, and so is apns", arguments: [["a"], []])
    func argumentsAlone(arguments: [String]) throws {
        var message = Message()
        message.priority = .high
        message.notification = Notification()
        message.notification?.titleLocArgs = arguments
        let body = V1Calls(message, to: .token("t"), now: Self.now).body(at: 0)
        let expected =
            #"{"message":{"token":"t","android":{"priority":"HIGH"},"webpush":{"headers":{"Urgency":"high"}}}}"#
        #expect(String(buffer: body) == expected)
    }

    @Test("Every REST target has its member")
    func targets() throws {
        let condition = try TopicCondition(parsing: "!(\"a\" IN topics)&&('b' in topics)")
        let topic = try #require(TopicName("news"))
        let expected: [(Target, [String])] = [
            (.token("t"), [#"{"message":{"token":"t"}}"#]),
            (.notificationKey("k"), [#"{"message":{"token":"k"}}"#]),
            (.installation("f"), [#"{"message":{"fid":"f"}}"#]),
            (.topic(topic), [#"{"message":{"topic":"news"}}"#]),
            (.condition(condition), [#"{"message":{"condition":"!('a' in topics) && ('b' in topics)"}}"#]),
            (.tokens(["a", "b", "a"]), ["a", "b", "a"].map { #"{"message":{"token":"\#($0)"}}"# }),
            (.installations(["f", "g"]), ["f", "g"].map { #"{"message":{"fid":"\#($0)"}}"# }),
        ]
        for (target, bodies) in expected {
            let calls = V1Calls(Message(), to: target, now: 0)
            #expect((0..<calls.count).map { String(buffer: calls.body(at: $0)) } == bodies)
        }
    }

    @Test("A token with special characters is escaped", arguments: ["\"", "\\", "\n", "a\",\"topic\":\"x", "\u{0}"])
    func hostileTokens(token: String) throws {
        let body = try VectorJSON(parsing: V1Calls(Message(), to: .tokens([token]), now: 0).body(at: 0))
        let expected = VectorJSON.object([
            .init(key: "message", value: .object([.init(key: "token", value: .string(token))]))
        ])
        #expect(expected.mismatches(in: body) == [])
    }

    @Test("Entries that fail locally are not sent, and the others keep their order")
    func localErrors() throws {
        func sent(_ tokens: String) throws -> Target? {
            try LegacyRequestDecoder.decode(ByteBuffer(string: #"{"registration_ids": \#(tokens)}"#)).sentTarget
        }
        #expect(try sent(#"["a", "", "/topics/x", "a", "b"]"#) == .tokens(["a", "a", "b"]))
        #expect(try sent(#"["a"]"#) == .tokens(["a"]))
        #expect(try sent(#"["", "/topics/x"]"#) == nil)
        #expect(try LegacyRequestDecoder.decode(ByteBuffer(string: #"{"to": "a"}"#)).sentTarget == .token("a"))
    }
}
