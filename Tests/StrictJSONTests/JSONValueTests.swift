import StrictJSON
import Testing

@Suite("JSONValue")
struct JSONValueTests {
    private static let sample = """
        {"text":"héllo","escaped":"a\\u0062c","number":-1.50,"yes":true,"no":false,"nothing":null,
        "list":[1,"two",[3],{"four":4}],"object":{"x":{"y":"z"}},"empty":{},"none":[]}
        """

    @Test("A member's name is found among others, with and without escapes")
    func keyPlaces() throws {
        let names = JSONNames(["to", "token", "tokens", "ü", ""])
        let text = #"{"token":1,"\u0074o":2,"tokens":3,"\u00fc":4,"":5,"toke":6,"TOKEN":7,"tokens ":8}"#
        let members = try #require(try JSONParsing.root(text).members)
        #expect(members.map { $0.keyPlace(in: names) } == [1, 0, 2, 3, 4, nil, nil, nil])
    }

    @Test("Only the accessor of a value's own kind returns a result")
    func answersForItsKind() throws {
        let root = try JSONParsing.root(Self.sample)
        let expected: [(String, JSONValue.Kind)] = [
            ("text", .string), ("escaped", .string), ("number", .number), ("yes", .bool), ("no", .bool),
            ("nothing", .null), ("list", .array), ("object", .object), ("empty", .object), ("none", .array),
        ]
        for (key, kind) in expected {
            let value = try #require(root[key])
            #expect(value.kind == kind)
            #expect((value.string != nil) == (kind == .string))
            #expect((value.number != nil) == (kind == .number))
            #expect((value.bool != nil) == (kind == .bool))
            #expect(value.isNull == (kind == .null))
            #expect((value.elements != nil) == (kind == .array))
            #expect((value.members != nil) == (kind == .object))
            #expect(kind == .object || value["x"] == nil)
        }
    }

    @Test("Scalars have the values of the text")
    func readsScalars() throws {
        let root = try JSONParsing.root(Self.sample)
        #expect(root["text"]?.string == "héllo")
        #expect(root["escaped"]?.string == "abc")
        #expect(root["number"]?.number?.text == "-1.50")
        #expect(root["yes"]?.bool == true)
        #expect(root["no"]?.bool == false)
    }

    @Test("The canonical text sorts members, except in a value of more than 32 KiB")
    func ordersMembers() throws {
        func text(_ first: String, _ second: String, _ count: Int) -> String {
            #"{"\#(first)":"\#(String(repeating: "v", count: count))","\#(second)":{"d":1,"c":2}}"#
        }
        let short = try JSONParsing.root(text("b", "a", 32_000))
        #expect(short.canonicalText.hasPrefix(#"{"a":{"c":2,"d":1},"b":"#))
        let long = text("b", "a", 33_000)
        #expect(try JSONParsing.root(long).canonicalText == long)
    }

    @Test("Scalars may be the root", arguments: ["null", "true", "12", "\"x\"", " -0.5e3 "])
    func readsScalarRoots(text: String) throws {
        #expect(try JSONParsing.root(text).canonicalText == text.filter { $0 != " " })
    }

    @Test("Members are iterated in text order and have a count")
    func iteratesMembers() throws {
        let members = try #require(try JSONParsing.root(Self.sample).members)
        #expect(
            members.map(\.key) == [
                "text", "escaped", "number", "yes", "no", "nothing", "list", "object", "empty", "none",
            ]
        )
        #expect(members.count == 10)
        #expect(members.underestimatedCount == 10)
        var rest = members
        _ = rest.next()
        #expect(Array(rest).count == 9)
        #expect(members.map { $0.value.kind }.suffix(4) == [.array, .object, .object, .array])
    }

    @Test("Elements are iterated in text order and have a count")
    func iteratesElements() throws {
        let elements = try #require(try JSONParsing.root(Self.sample)["list"]?.elements)
        #expect(elements.count == 4)
        #expect(elements.underestimatedCount == 4)
        var rest = elements
        _ = rest.next()
        #expect(Array(rest).count == 3)
        #expect(elements.map(\.canonicalText) == ["1", "\"two\"", "[3]", "{\"four\":4}"])
        let empty = try JSONParsing.root("[[],{}]")
        #expect(empty.elements?.map { $0.elements?.count ?? $0.members?.count } == [0, 0])
        #expect(empty.elements?.flatMap { $0.elements.map(Array.init) ?? [] }.isEmpty == true)
    }

    @Test("Members are found by their unescaped names, and names are not normalised")
    func findsMembers() throws {
        let root = try JSONParsing.root(
            "{\"\\u0061b\":1,\"é\":2,\"e\u{301}\":3,\"\":4,\"n\":{\"ab\":5},\"a\\u0000\":6}"
        )
        #expect(root["ab"]?.number?.text == "1")
        #expect(root["\u{E9}"]?.number?.text == "2")
        #expect(root["e\u{301}"]?.number?.text == "3")
        #expect(root[""]?.number?.text == "4")
        #expect(root["n"]?["ab"]?.number?.text == "5")
        #expect(root["a\u{0}"]?.number?.text == "6")
        #expect(root["a"] == nil)
        #expect(root["abc"] == nil)
        #expect(root["\\u0061b"] == nil)
    }

    @Test("A member's name is compared in place")
    func comparesNames() throws {
        let members = try #require(try JSONParsing.root("{\"title\":1,\"b\\u006fdy\":2}").members)
        #expect(members.map { $0.keyEquals("title") } == [true, false])
        #expect(members.map { $0.keyEquals("body") } == [false, true])
        #expect(members.map { $0.keyEquals("titlf") } == [false, false])
        #expect(members.map { $0.keyEquals("bod") } == [false, false])
    }

    @Test("The offset of a value is that of its first byte")
    func tellsOffsets() throws {
        let root = try JSONParsing.root(" {\"a\": \"x\", \"b\":[ 10,{}]}")
        #expect(root.offset == 1)
        #expect(root["a"]?.offset == 7)
        #expect(root["b"]?.offset == 16)
        #expect(root["b"]?.elements?.map(\.offset) == [18, 21])
    }

    @Test(
        "Canonical text has no blanks, sorted names, numbers as written and few escapes",
        arguments: [
            ("{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}"),
            ("{\"a\" : [ 1.0 , null , true, false ] }", "{\"a\":[1.0,null,true,false]}"),
            (
                "{\"b\":{\"d\":1,\"c\":[{\"z\":1,\"y\":2}]},\"a\":null}",
                "{\"a\":null,\"b\":{\"c\":[{\"y\":2,\"z\":1}],\"d\":1}}"
            ),
            ("[12345678901234567890,1E+2,-0,1e999]", "[12345678901234567890,1E+2,-0,1e999]"),
            ("{\"ab\":1,\"a\":2,\"\":3,\"B\":4}", "{\"\":3,\"B\":4,\"a\":2,\"ab\":1}"),
            // UTF-16 would sort the surrogate pair before U+FFFF.
            ("{\"\\uD800\\uDC00\":1,\"\\uFFFF\":2}", "{\"\u{FFFF}\":2,\"\u{10000}\":1}"),
            ("{\"é\":1,\"e\u{301}\":2,\"f\":3}", "{\"e\u{301}\":2,\"f\":3,\"é\":1}"),
            ("{\"\\u0062\":1,\"\\u0061\":2}", "{\"a\":2,\"b\":1}"),
            ("\"\\u0041\\/\\u00e9\\u20AC\"", "\"A/é€\""),
            ("\"/\"", "\"/\""),
            ("\"\\\"\\\\\\b\\f\\n\\r\\t\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\""),
            ("\"\\u0008\\u000C\\u000A\\u000d\\u0009\\u0022\\u005C\"", "\"\\b\\f\\n\\r\\t\\\"\\\\\""),
            ("\"\\u0000\\u0001\\u000B\\u000E\\u001F\"", "\"\\u0000\\u0001\\u000b\\u000e\\u001f\""),
            ("\"\\u007f\\u0080\\u2028\"", "\"\u{7F}\u{80}\u{2028}\""),
            ("[[],{},[[]],\"\"]", "[[],{},[[]],\"\"]"),
        ]
    )
    func writesCanonicalText(text: String, expected: String) throws {
        let canonical = try JSONParsing.root(text).canonicalText
        #expect(canonical.utf8.elementsEqual(expected.utf8), "\(canonical)")
    }

    @Test("Long names with a common prefix sort by their last bytes")
    func sortsLongNames() throws {
        let start = String(repeating: "a", count: 21)
        let names = ["", "\u{7F}", "\u{E9}", "a", "aa", "aaaaaaaa", "aaaaaaab", "b"].map { start + $0 }
        let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        let members = names.reversed().map { "\"\($0)\":1" }.joined(separator: ",")
        let expected = sorted.map { "\"\($0)\":1" }.joined(separator: ",")
        #expect(try JSONParsing.root("{\(members)}").canonicalText == "{\(expected)}")
    }

    @Test("Lengths are those of the unescaped text")
    func tellsLengths() throws {
        let root = try JSONParsing.root(#"{"a\u00e9\ud83d\ude00\n":"\u0041é\"","plain":"é","no":1}"#)
        #expect(root.members?.map(\.keyByteCount) == root.members?.map { $0.key.utf8.count })
        #expect(root.members?.map { $0.value.stringByteCount } == [4, 2, nil])
    }

    @Test("A nested value has a canonical text, even with 20,000 levels")
    func writesDeepCanonicalText() throws {
        let depth = 20_000
        let text = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        let root = try JSONParsing.root(
            "{\"z\":0,\"deep\":\(text)}",
            limits: JSONLimits(maxDepth: depth + 1, maxElements: depth)
        )
        #expect(root["deep"]?.canonicalText == text)
    }
}
