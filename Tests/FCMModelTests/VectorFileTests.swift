import NIOCore
import Testing
import VectorTestKit

@Suite("VectorFile")
struct VectorFileTests {
    @Test("No id occurs twice")
    func ids() throws {
        var seen: Set<String> = []
        for name in ["conditions", "device-groups", "plaintext", "responses", "translate", "validate"] {
            for vector in try VectorFile.read(name) {
                var members = try vector.members()
                let id = try members.take("id").text()
                #expect(seen.insert(id).inserted, "\(id) occurs twice")
            }
        }
    }

    @Test(
        "Markers are expanded from the inside out",
        arguments: [
            (#"{"$repeat": "ab", "times": 3}"#, #""ababab""#),
            (#"{"a": [{"$concat": ["x", {"$repeat": "é", "times": 2}, ""]}]}"#, #"{"a": ["xéé"]}"#),
            (#"{"$list": {"$concat": ["t{i}-", {"$repeat": "{i}", "times": 2}]}, "count": 2}"#, #"["t0-00", "t1-11"]"#),
            (#"{"$list": {"k": ["{i}", 1]}, "count": 1}"#, #"[{"k": ["0", 1]}]"#),
            (#"{"$list": "x", "count": 0}"#, "[]"),
        ]
    )
    func markers(text: String, expected: String) throws {
        let expanded = try VectorJSON(parsing: text).expanded()
        #expect(try VectorJSON(parsing: expected).mismatches(in: expanded) == [])
    }

    @Test(
        "An incomplete or invalid marker is refused",
        arguments: [
            #"{"$repeat": "ab"}"#, #"{"$repeat": 1, "times": 3}"#, #"{"$repeat": "ab", "times": 3, "more": 1}"#,
            #"{"$concat": [1]}"#, #"{"$list": "x"}"#, #"{"$list": "x", "count": "2"}"#,
        ]
    )
    func badMarkers(text: String) throws {
        let value = try VectorJSON(parsing: text)
        #expect(throws: VectorProblem.self) { try value.expanded() }
    }

    @Test(
        "Values match if they are equal as JSON or satisfy a matcher",
        arguments: [
            (#"{"a": 1, "b": [true, null]}"#, #"{"b": [true, null], "a": 1}"#, true),
            ("[1, 100, 0, 1.5]", "[1.0, 1e2, -0, 15E-1]", true),
            (#"{"$any": "positive_int"}"#, "9007199254740991", true), (#"{"$any": "nonempty_string"}"#, #""x""#, true),
            ("1", #""1""#, false), ("1", "2", false), ("1", "-1", false), ("1", "10", false), ("0", "null", false),
            ("true", "false", false), (#""a""#, #""b""#, false),
            ("\"\u{E9}\"", "\"e\u{301}\"", false), ("[1]", "[1, 2]", false), ("[1, 2]", "[2, 1]", false),
            ("{}", "[]", false),
            (#"{"a": 1}"#, "{}", false), ("{}", #"{"a": 1}"#, false),
            (#"{"a": {"b": 1}}"#, #"{"a": {"b": 1, "c": 2}}"#, false),
            (#"{"$any": "positive_int"}"#, "0", false), (#"{"$any": "positive_int"}"#, "1.5", false),
            (#"{"$any": "positive_int"}"#, "9007199254740992", false), (#"{"$any": "positive_int"}"#, #""1""#, false),
            (#"{"$any": "nonempty_string"}"#, #""""#, false), (#"{"$any": "nonempty_string"}"#, "1", false),
            (#"{"$any": "anything"}"#, "1", false),
        ]
    )
    func matches(expected: String, actual: String, isMatch: Bool) throws {
        let mismatches = try VectorJSON(parsing: expected).mismatches(in: VectorJSON(parsing: actual))
        #expect(mismatches.isEmpty == isMatch)
    }

    @Test("Further members are allowed on the outermost level only")
    func furtherMembers() throws {
        let expected = try VectorJSON(parsing: #"{"a": {"b": 1}}"#)
        #expect(try expected.mismatches(in: VectorJSON(parsing: #"{"a": {"b": 1}, "c": 2}"#), allowingMore: true) == [])
        #expect(try expected.mismatches(in: VectorJSON(parsing: #"{"a": {"b": 1, "c": 2}}"#), allowingMore: true) != [])
        #expect(try expected.mismatches(in: VectorJSON(parsing: #"{"c": 2}"#), allowingMore: true) != [])
    }

    @Test("Numbers are serialised unchanged")
    func numbers() throws {
        let text = #"{"a":[1.0,1e2,12345678901234567890,0.10],"b":"\"é/"}"#
        #expect(String(buffer: try VectorJSON(parsing: text).serialised()) == text)
    }

    @Test("A member that is not taken is refused")
    func unknownMembers() throws {
        var members = try VectorJSON(parsing: #"{"a": 1, "b": 2}"#).members()
        #expect(try members.take("a").integer() == 1)
        #expect(throws: VectorProblem.self) { try members.take("a") }
        #expect(throws: VectorProblem.self) { try members.finish() }
    }
}
