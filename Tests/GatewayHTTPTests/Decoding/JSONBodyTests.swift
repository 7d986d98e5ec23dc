import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct JSONBodyTests {
    /// A malformed body and the expected members of its problem.
    struct Malformed: Sendable, CustomTestStringConvertible {
        var body: String
        var code: String
        var offset: Int
        var pointer: String

        init(_ body: String, _ code: String, _ offset: Int, _ pointer: String) {
            self.body = body
            self.code = code
            self.offset = offset
            self.pointer = pointer
        }

        var testDescription: String { String(self.body.prefix(40)) }
    }

    @Test(
        "A malformed body is refused with the offset and pointer of its first fault",
        arguments: [
            Malformed("{", "malformed_json", 1, ""),
            Malformed("hello", "malformed_json", 0, ""),
            Malformed("{'token':1}", "malformed_json", 1, ""),
            Malformed(#"{"token":'t'}"#, "malformed_json", 9, "/token"),
            Malformed(#"{"token":}"#, "malformed_json", 9, "/token"),
            Malformed(#"{"token":"t",}"#, "malformed_json", 13, ""),
            Malformed(#"{"token":"t"} x"#, "malformed_json", 14, ""),
            Malformed(#"{"data":{"a":tru}}"#, "malformed_json", 16, "/data/a"),
            Malformed(#"{"tokens":["a",,]}"#, "malformed_json", 15, "/tokens/1"),
            Malformed(#"{"token":"\ud800"}"#, "malformed_json", 10, "/token"),
            Malformed(#"{"ttl":01}"#, "malformed_json", 8, "/ttl"),
            Malformed("[]", "malformed_json", 0, ""),
            Malformed("  5", "malformed_json", 2, ""),
            Malformed(#""token""#, "malformed_json", 0, ""),
            Malformed("null", "malformed_json", 0, ""),
            Malformed(#"{"token":"a","token":"b"}"#, "duplicate_key", 13, "/token"),
            Malformed(#"{"token":"t","data":{"a":"1","\u0061":"2"}}"#, "duplicate_key", 29, "/data/a"),
            Malformed(
                #"{"x":\#(String(repeating: "[", count: 16))"#,
                "too_deep",
                20,
                "/x" + String(repeating: "/0", count: 15)
            ),
            Malformed(JSONBodyTests.manyMembers, "too_many_members", 18_893, "/m1999"),
        ]
    )
    func malformed(body: Malformed) async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.send(body.body, key: key)
            #expect(answer.status == 400)
            let problem = try answer.problem()
            #expect(problem["code"]?.text == body.code)
            #expect(problem["offset"]?.int == body.offset)
            // Without a faulty member there is no pointer.
            #expect(problem["pointer"]?.text ?? "" == body.pointer)
            #expect(problem["retryable"] == false)
            #expect(problem["action"] == "fix_request")
            let members: Set = ["type", "title", "status", "code", "detail", "retryable", "action", "offset"]
            #expect(problem.keys == members.union(body.pointer.isEmpty ? [] : ["pointer"]))
        }
    }

    @Test(
        "Single quotes are refused with a hint to use double quotes",
        arguments: [
            ("{'token':1}", "a member's name in double quotes is expected here"),
            (#"{"token":'t'}"#, "a string must be in double quotes"),
        ]
    )
    func quotes(body: String, detail: String) async throws {
        try await TestGateway.run { gateway, key in
            let problem = try await gateway.send(body, key: key).problem()
            #expect(problem["detail"]?.text == detail)
        }
    }

    @Test(
        "A body of another media type than JSON is refused",
        arguments: [
            "text/plain", "application/x-www-form-urlencoded", "text/json", "application/jsonx", "application/json5",
            "application/problem+json", "*/*", "json", "application/", ";application/json",
            // No media type at all.
            "",
        ]
    )
    func otherMediaType(type: String) async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.send(#"{"token":"t"}"#, key: key, headers: ["Content-Type": type])
            let problem = try answer.expectProblem(415, "unsupported_media_type")
            #expect(problem["action"] == "fix_request")
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test(
        "The JSON media type is recognised in any case and with parameters",
        arguments: [
            "application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8",
            "application/json ;charset=utf-8", "application/json\t",
        ]
    )
    func jsonMediaType(type: String) {
        #expect(JSONBody.isJSON(type))
    }

    /// 2,001 members including the token: one more than allowed.
    private static let manyMembers =
        #"{"token":"t","# + (0..<2_000).map { #""m\#($0)":1"# }.joined(separator: ",") + "}"
}
