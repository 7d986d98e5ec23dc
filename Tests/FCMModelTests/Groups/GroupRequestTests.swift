import NIOCore
import Testing

@testable import FCMModel

struct GroupRequestTests {
    private static func decode(_ body: String) throws -> GroupRequest {
        try GroupRequestDecoder.decode(ByteBuffer(string: body), contentType: "application/json; charset=utf-8")
    }

    @Test("Nulls and empty texts are as good as nothing")
    func absent() throws {
        let request = try Self.decode(
            #"{"operation":"add","notification_key_name":"","notification_key":"k","registration_ids":["a"],"x":null}"#
        )
        #expect(request == .change(GroupChange(.add, name: nil, key: "k", tokens: ["a"])))
    }

    @Test(
        "What no group can be made of is refused without repeating it",
        arguments: [
            #"{"operation":"create","notification_key_name":"a\u0000secret","registration_ids":["r"]}"#,
            #"{"operation":"create","notification_key_name":"secret\n","registration_ids":["r"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":["/topics/secret"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":[1,"secret"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":["secret\#(String(repeating: "x", count: 4_096))"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":["\#(Array(repeating: "secret", count: 101).joined(separator: #"",""#))"]}"#,
            #"{"operation":"create","notification_key_name":"n","registration_ids":null}"#,
            #"{"operation":["secret"],"notification_key_name":"n","registration_ids":["r"]}"#,
            #"{"operation":"secret","notification_key_name":"n","registration_ids":["r"]}"#,
            #"["secret"]"#, "", "null", "{", #"{"operation":"create"}"#,
        ]
    )
    func refusals(body: String) throws {
        let refusal = try #require(throws: Refusal.self) { try Self.decode(body) }
        #expect(refusal.detail?.isEmpty == false)
        #expect(refusal.detail?.contains("secret") == false)
    }

    @Test(
        "A query is refused unless it names one group",
        arguments: [
            "notification_key_name=%", "notification_key_name=%zz", "notification_key_name=%ff",
            "Notification_key_name=a",
            "notification_key_name", "notification_key_name=%00", "notification_key_name=a&notification_key_name=",
        ]
    )
    func queries(query: String) {
        #expect(throws: Refusal.self) { try GroupRequestDecoder.decode(query: ByteBuffer(string: query)) }
    }

    @Test("Tokens that only look alike are different devices")
    func alike() throws {
        let request = try Self.decode(
            #"{"operation":"create","notification_key_name":"n","registration_ids":["\u00e9","e\u0301","\u00e9"]}"#
        )
        guard case .change(let change) = request else {
            Issue.record("\(request)")
            return
        }
        #expect(change.tokens.map { Array($0.utf8) } == [Array("\u{E9}".utf8), Array("e\u{301}".utf8)])
    }

    @Test("Other parameters of a query are not handed on")
    func otherParameters() throws {
        let request = try GroupRequestDecoder.decode(query: ByteBuffer(string: "key=x&notification_key_name=a&b=c"))
        #expect(GroupRequestEncoder.path(of: request) == "/fcm/notification?notification_key_name=a")
    }

    @Test("In a look-up everything is escaped that is not unreserved")
    func escapes() {
        let path = GroupRequestEncoder.path(of: .lookUp(name: "a b&c/é+%=?#~._-Z9"))
        #expect(path == "/fcm/notification?notification_key_name=a%20b%26c%2F%C3%A9%2B%25%3D%3F%23~._-Z9")
    }

    @Test(
        "An answer that can't be understood is never a group",
        arguments: [
            (200, ""), (200, "{}"), (200, #"{"notification_key":""}"#), (200, #"{"notification_key":7}"#),
            (200, "<html>"), (200, #"{"notification_key":"\#(String(repeating: "k", count: 4_097))"}"#),
            (200, #"{"notification_key":"/topics/all"}"#), (200, #"{"notification_key":"a b"}"#),
            (200, #"{"notification_key":"a","notification_key":"b"}"#), (204, ""), (301, ""), (404, "<html>"),
            (410, ""),
        ]
    )
    func foreign(status: Int, body: String) {
        let response = LegacyResponse(status: status, retryAfter: nil, body: ByteBuffer(string: body))
        let result = GroupResponseReader.read(response, now: 0)
        #expect(result.answer == .failure(GroupFailure(.upstreamProtocol)))
        #expect(result.upstreamCode == String(status))
    }

    @Test("FCM's own words are handed on cut, and pages not at all")
    func words() throws {
        func text(_ body: String) throws -> String? {
            let response = LegacyResponse(status: 400, retryAfter: nil, body: ByteBuffer(string: body))
            let failure = try #require(throws: GroupFailure.self) {
                try GroupResponseReader.read(response, now: 0).answer.get()
            }
            return failure.text
        }
        #expect(try text(String(repeating: "x", count: 9_000))?.count == 200)
        #expect(try text("<html>secret</html>") == "BadRequest")
        #expect(try text("") == "BadRequest")
        #expect(try text("one\ntwo") == "one")
        // One character as long as the answer.
        let letter = "x" + String(repeating: "\u{301}", count: 9_000)
        #expect(try text(letter)?.unicodeScalars.count == 200)
        #expect(try text(#"{"error":"\#(letter)"}"#)?.unicodeScalars.count == 200)
    }
}
