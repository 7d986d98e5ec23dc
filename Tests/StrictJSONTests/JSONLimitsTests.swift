import StrictJSON
import Testing

@Suite("JSONLimits")
struct JSONLimitsTests {
    @Test("The default limits")
    func defaults() {
        #expect(JSONLimits().maxDepth == 16)
        #expect(JSONLimits().maxMembers == 2_000)
        #expect(JSONLimits().maxElements == 5_000)
        #expect(JSONLimits().maxSpecialCharacters == 5_000)
        #expect(JSONLimits().maxNumberBytes == 1_024)
    }

    @Test("Nesting up to the limit is accepted, one level more refused", arguments: [1, 2, 16, 64, 1_000])
    func boundsDepth(limit: Int) {
        let limits = JSONLimits(maxDepth: limit)
        for (begin, end) in [("[", "]"), ("{\"a\":", "}")] {
            let start = String(repeating: begin, count: limit)
            let finish = String(repeating: end, count: limit)
            #expect(JSONParsing.refusal("\(start)0\(finish)".utf8, limits: limits) == nil)
            let refusal = JSONParsing.refusal("\(start)\(begin)0\(end)\(finish)".utf8, limits: limits)
            #expect(refusal?.code == .tooDeep)
            #expect(refusal?.offset == start.utf8.count)
            let token = begin == "[" ? "/0" : "/a"
            #expect(refusal?.pointer.description == String(repeating: token, count: limit))
        }
    }

    @Test("Depth counts levels, not containers, and a depth of zero allows only scalars")
    func countsLevels() throws {
        let siblings = (0..<50).map { _ in "{\"a\":[]}" }.joined(separator: ",")
        _ = try JSONParsing.root("[\(siblings)]", limits: JSONLimits(maxDepth: 3))
        #expect(JSONParsing.refusal("1".utf8, limits: JSONLimits(maxDepth: 0)) == nil)
        let refusal = JSONParsing.refusal(" []".utf8, limits: JSONLimits(maxDepth: 0))
        #expect(refusal?.code == .tooDeep)
        #expect(refusal?.offset == 1)
        #expect(refusal?.pointer == JSONPointer())
    }

    @Test("Members up to the limit are accepted, one more refused", arguments: [0, 1, 8, 9, 2_000])
    func boundsMembers(limit: Int) {
        let limits = JSONLimits(maxMembers: limit)
        let names = (0...limit).map { "\"n\($0)\":0" }
        #expect(JSONParsing.refusal("{\(names.dropLast().joined(separator: ","))}".utf8, limits: limits) == nil)
        let refusal = JSONParsing.refusal("{\(names.joined(separator: ","))}".utf8, limits: limits)
        #expect(refusal?.code == .tooManyMembers)
        #expect(refusal?.pointer.description == "/n\(limit)")
    }

    @Test("Members are counted over the whole document")
    func countsAllObjects() {
        let limits = JSONLimits(maxMembers: 6)
        let start = #"[{"a":1,"b":2},{"a":{"a":1},"b":{"a":1"#
        #expect(JSONParsing.refusal("\(start)}}]".utf8, limits: limits) == nil)
        let refusal = JSONParsing.refusal("\(start),\"b\":2}}]".utf8, limits: limits)
        #expect(refusal?.code == .tooManyMembers)
        #expect(refusal?.pointer.description == "/1/b/b")
    }

    @Test("Elements of arrays are not members")
    func ignoresElements() throws {
        let elements = Array(repeating: "0", count: 5_000).joined(separator: ",")
        #expect(try JSONParsing.root("[\(elements)]").elements?.count == 5_000)
    }

    @Test("Elements of all arrays up to the limit are accepted, one more refused", arguments: [0, 1, 7])
    func boundsElements(limit: Int) {
        let limits = JSONLimits(maxElements: limit)
        func text(_ count: Int) -> String {
            let ones = Array(repeating: "1", count: count).joined(separator: ",")
            return "{\"a\":[],\"b\":[\(ones)]}"
        }
        #expect(JSONParsing.refusal(text(limit).utf8, limits: limits) == nil)
        let refusal = JSONParsing.refusal(text(limit + 1).utf8, limits: limits)
        #expect(refusal?.code == .tooManyMembers)
        #expect(refusal?.offset == text(limit + 1).utf8.count - 2)
        #expect(JSONParsing.refusal("[[],[1]]".utf8, limits: JSONLimits(maxElements: 3)) == nil)
        #expect(JSONParsing.refusal("[[],[1]]".utf8, limits: JSONLimits(maxElements: 2))?.code == .tooManyMembers)
    }

    @Test(
        "Each escape and each non-ASCII character counts once, in names and values",
        arguments: [#"\n"#, #"\u0041"#, #"\ud83d\ude00"#, "\u{E9}", "\u{6F22}", "\u{1F600}"]
    )
    func boundsSpecialCharacters(character: String) throws {
        let text = "{\"a\(character)\":[\"\(character)b\",\"\(character)\"]}"
        #expect(JSONParsing.refusal(text.utf8, limits: JSONLimits(maxSpecialCharacters: 3)) == nil)
        let refusal = JSONParsing.refusal(text.utf8, limits: JSONLimits(maxSpecialCharacters: 2))
        #expect(refusal?.code == .tooManyMembers)
        let unescaped = try #require(try JSONParsing.root("\"\(character)\"").string)
        #expect(refusal?.pointer.description == "/a\(unescaped)/1")
        #expect(JSONParsing.refusal("[\"plain\"]".utf8, limits: JSONLimits(maxSpecialCharacters: 0)) == nil)
    }

    @Test("A number up to the limit is accepted, one byte more refused", arguments: ["1", "-0.", "1e", "-7.5E-"])
    func boundsNumbers(start: String) {
        let limits = JSONLimits(maxNumberBytes: 40)
        let number = start + String(repeating: "1", count: 40 - start.utf8.count)
        #expect(JSONParsing.refusal("[\(number)]".utf8, limits: limits) == nil)
        let refusal = JSONParsing.refusal("[\(number)1]".utf8, limits: limits)
        #expect(refusal?.code == .malformed)
        #expect(refusal?.offset == 1)
    }
}
