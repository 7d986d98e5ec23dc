import Testing

@testable import FCMEmulator

@Suite("JSONValue")
struct JSONValueTests {
    @Test(
        "Texts that are not strict JSON objects are refused",
        arguments: [
            "", "hello", "[]", "1", "{\"a\":1,}", "{\"a\":[1,]}", "{\"a\":1}x", "{\"a\":1,\"a\":2}",
            "{\"a\":1,\"\\u0061\":2}", "{\"d\":{\"k\":1,\"k\":2}}", "\u{FEFF}{}", "{\"a\":NaN}", "{\"a\":01}",
            "{\"a\":\"\\ud83d\"}", "{\"a\":\"\\ude00\"}", "{\"\\ud83d\":1}", "{\"a\":\"\t\"}", "{\"a\" 1}", "{a:1}",
            "{\"a\":}", "{\"a", "{\"a\\", "{,}", "{\"a\":1 \"b\":2}", "// c\n{}", "{\"a\":+1}", "{\"a\":.5}",
            "{\"a\":tru}",
        ]
    )
    func refused(text: String) {
        #expect(throws: JSONTextError.self) { try JSONValue.members(of: Array(text.utf8)) }
    }

    @Test("Values keep their JSON types")
    func types() throws {
        let text = "{\"n\":null,\"b\":true,\"i\":1,\"s\":\"x\",\"a\":[0],\"o\":{}}"
        let types = try JSONValue.members(of: Array(text.utf8)).mapValues(\.typeName)
        #expect(
            types == [
                "n": "null", "b": "a boolean", "i": "a number", "s": "a string", "a": "an array", "o": "an object",
            ]
        )
    }

    @Test(
        "Values are written without blanks and with sorted members",
        arguments: [
            ("\"x y\"", "x y"), ("42", "42"), ("1.5", "1.5"), ("true", "true"),
            ("{ \"b\": 1, \"a\": [1, null] }", "{\"a\":[1,null],\"b\":1}"),
            ("[\"a\\/\\u0001\\n\\\"\"]", "[\"a/\\u0001\\n\\\"\"]"),
        ]
    )
    func text(json: String, expected: String) throws {
        #expect(try JSONValue.read(Array(json.utf8)).text == expected)
    }
}
