import NIOCore
import StrictJSON
import Testing

@Suite("JSONDocument")
struct JSONDocumentTests {
    private static let malformed: [Refusal] = [
        // Structure.
        Refusal("", at: 0),
        Refusal(" \n", at: 2),
        Refusal("[", at: 1),
        Refusal("{", at: 1),
        Refusal("[1", at: 2),
        Refusal("[1,", at: 3, "/1"),
        Refusal("[1,]", at: 3, "/1"),
        Refusal("[,1]", at: 1, "/0"),
        Refusal("[1 2]", at: 3),
        Refusal("[1}", at: 2),
        Refusal("[]]", at: 2),
        Refusal("[1:2]", at: 2),
        Refusal("{\"a\"}", at: 4, "/a"),
        Refusal("{\"a\"", at: 4, "/a"),
        Refusal("{\"a\":}", at: 5, "/a"),
        Refusal("{\"a\":", at: 5, "/a"),
        Refusal("{\"a\":1", at: 6),
        Refusal("{\"a\":1,}", at: 7),
        Refusal("{\"a\":1 \"b\":2}", at: 7),
        Refusal("{\"a\":1]", at: 6),
        Refusal("{\"a\" 1}", at: 5, "/a"),
        Refusal("{,\"a\":1}", at: 1),
        Refusal("{a:1}", at: 1),
        Refusal("{1:1}", at: 1),
        Refusal("{'a':1}", at: 1),
        Refusal("{\"a\":1}/**/", at: 7),
        Refusal("[1,//\n2]", at: 3, "/1"),
        Refusal("1 2", at: 2),
        Refusal("[] \u{0}", at: 3),
        Refusal("[\u{B}1]", at: 1, "/0"),
        Refusal("[\u{A0}1]", at: 1, "/0"),
        Refusal("\u{FEFF}[]", at: 0),
        Refusal("{\"a\":{\"b/c\":[1,{\"~\":tru}]}}", at: 23, "/a/b~1c/1/~0"),
        Refusal("{\"a\":{},\"b\":[[],[x]]}", at: 17, "/b/1/0"),
        Refusal("{\"a\":{\"\\x\":1}}", at: 7, "/a"),
        Refusal("[[1,2],{\"k\":[3,\"\\q\"]}]", at: 16, "/1/k/1"),
        // Numbers and words, at the offending byte.
        Refusal("01", at: 1),
        Refusal("-01", at: 2),
        Refusal("00", at: 1),
        Refusal("-", at: 1),
        Refusal("-a", at: 1),
        Refusal("--1", at: 1),
        Refusal("1.", at: 2),
        Refusal("1.e3", at: 2),
        Refusal(".5", at: 0),
        Refusal("+1", at: 0),
        Refusal("1e", at: 2),
        Refusal("1e+", at: 3),
        Refusal("1e+-1", at: 3),
        Refusal("1E1.5", at: 3),
        Refusal("1a", at: 1),
        Refusal("0x1", at: 1),
        Refusal("[-]", at: 2, "/0"),
        Refusal("１", at: 0),
        Refusal("NaN", at: 0),
        Refusal("Infinity", at: 0),
        Refusal("-Infinity", at: 1),
        Refusal("nul", at: 3),
        Refusal("nulL", at: 3),
        Refusal("True", at: 0),
        Refusal("[tru]", at: 4, "/0"),
        Refusal("falsey", at: 5),
        Refusal("undefined", at: 0),
        // Strings, at the offending character or escape.
        Refusal("\"", at: 1),
        Refusal("\"a", at: 2),
        Refusal("\"abcdefghijkl", at: 13),
        Refusal("\"\u{1}\"", at: 1),
        Refusal("\"a\nb\"", at: 2),
        Refusal("\"abcdefghijkl\tb\"", at: 13),
        Refusal("\"\u{1F}\"", at: 1),
        Refusal("\"\\", at: 1),
        Refusal("\"\\x\"", at: 1),
        Refusal("\"\\'\"", at: 1),
        Refusal("\"\\U0041\"", at: 1),
        Refusal("\"\\u12G4\"", at: 1),
        Refusal("\"\\u12\"", at: 1),
        Refusal("\"\\u\"", at: 1),
        Refusal("\"\\u 123\"", at: 1),
        Refusal("\"\\uD800\"", at: 1),
        Refusal("\"ab\\uDC00\"", at: 3),
        Refusal("\"\\uD800\\u0041\"", at: 1),
        Refusal("\"\\uD800\\uD800\"", at: 1),
        Refusal("\"\\uD800x\"", at: 1),
        Refusal("\"\\uDBFF\\n\"", at: 1),
        Refusal("\"\\uD800\\uDC0\"", at: 1),
        Refusal("{\"\\uDFFF\":1}", at: 2),
        // Names occurring twice in one object, at the second occurrence.
        Refusal("{\"a\":1,\"a\":2}", at: 7, "/a", .duplicateKey),
        Refusal("{\"a\":1,\"\\u0061\":2}", at: 7, "/a", .duplicateKey),
        Refusal("{\"\\u0061\":1,\"a\":2}", at: 12, "/a", .duplicateKey),
        Refusal("{\"\\u0061\":1,\"\\u0061\":2}", at: 12, "/a", .duplicateKey),
        Refusal("{\"\":1,\"\":2}", at: 6, "/", .duplicateKey),
        Refusal("{\"\\/\":1,\"/\":2}", at: 8, "/~1", .duplicateKey),
        Refusal("{\"\\ud834\\udd1e\":1,\"𝄞\":2}", at: 18, "/𝄞", .duplicateKey),
        Refusal("{\"\\u00e9\":1,\"é\":2}", at: 12, "/é", .duplicateKey),
        Refusal("{\"a\":{\"b\":[0]},\"c\":[],\"a\":2}", at: 22, "/a", .duplicateKey),
        Refusal("{\"x\":[{\"k\":1,\"\\u006b\":2}]}", at: 13, "/x/0/k", .duplicateKey),
        // The second name is a duplicate even if the rest is malformed.
        Refusal("{\"a\":1,\"a\"", at: 7, "/a", .duplicateKey),
    ]

    @Test("A malformed text or a duplicate name is refused with its offset and pointer", arguments: Self.malformed)
    func refuses(row: Refusal) {
        let refusal = JSONParsing.refusal(row.text.utf8)
        #expect(refusal?.code == row.code)
        #expect(refusal?.offset == row.offset)
        #expect(refusal?.pointer.description == row.pointer)
        #expect(refusal?.reason.isEmpty == false)
    }

    @Test(
        "Names that differ in any code point, or in their object, are different",
        arguments: [
            "{\"é\":1,\"e\u{301}\":2}",
            "{\"\u{212B}\":1,\"\u{C5}\":2}",
            "{\"a\":1,\"A\":2}",
            "{\"a\":1,\"a\\u0000\":2}",
            "{\"a\":1,\"ab\":2,\"\":3,\" \":4}",
            "{\"a\":{\"a\":{\"a\":1}}}",
            "[{\"a\":1},{\"a\":2}]",
            "{\"a\\\\u0062\":1,\"ab\":2}",
        ]
    )
    func acceptsDifferentNames(text: String) throws {
        _ = try JSONParsing.root(text)
    }

    @Test("Duplicates are found in objects of every size, at every position", arguments: [2, 7, 8, 9, 10, 33, 200])
    func findsDuplicatesInLargeObjects(count: Int) {
        let names = (0..<count).map { "\"name\($0)\":{\"inner\":\($0)}" }
        #expect(JSONParsing.refusal("{\(names.joined(separator: ","))}".utf8) == nil)
        for first in Set([0, 1, 7, 8, 9, count / 2, count - 1]) where first < count {
            let start = "{\(names.joined(separator: ",")),"
            let refusal = JSONParsing.refusal("\(start)\"n\\u0061me\(first)\":0}".utf8)
            #expect(refusal?.code == .duplicateKey)
            #expect(refusal?.offset == start.utf8.count)
            #expect(refusal?.pointer == JSONPointer().appending("name\(first)"))
        }
    }

    @Test("Large objects that follow and contain each other do not share names")
    func keepsLargeObjectsApart() throws {
        let inner = "{\((0..<20).map { "\"n\($0)\":\($0)" }.joined(separator: ","))}"
        let outer = "{\((0..<20).map { "\"n\($0)\":\(inner)" }.joined(separator: ","))}"
        let root = try JSONParsing.root("[\(outer),\(outer)]")
        #expect(root.elements?.map { $0.members?.count } == [20, 20])
    }

    @Test("A hundred thousand names are read, and a duplicate among them is found")
    func readsHugeObjects() throws {
        let limits = JSONLimits(maxMembers: 200_000)
        let names = (0..<100_000).map { "\"n\($0)\":0" }.joined(separator: ",")
        #expect(try JSONParsing.root("{\(names)}", limits: limits).members?.count == 100_000)
        let refusal = JSONParsing.refusal("{\(names),\"n50000\":0}".utf8, limits: limits)
        #expect(refusal?.code == .duplicateKey)
        #expect(refusal?.pointer.description == "/n50000")
        // The default limits refuse the text earlier.
        let early = JSONParsing.refusal("{\(names)}".utf8)
        #expect(early?.code == .tooManyMembers)
        #expect(early?.pointer.description == "/n2000")
    }

    @Test("Every truncated text is refused at an offset within it")
    func refusesTruncations() {
        let text = Array(
            "{\"to\":\"tøken€𝄞\",\"data\":{\"k\\u0031\":[1.5e+10,true,false,null,{}],\"\\ud834\\udd1e\":-0}}\n".utf8
        )
        #expect(JSONParsing.refusal(text) == nil)
        for count in 0..<text.count - 1 {
            let refusal = JSONParsing.refusal(text.prefix(count))
            #expect(refusal?.code == .malformed)
            #expect((0...count).contains(refusal?.offset ?? -1), "cut at \(count)")
        }
    }

    @Test("Only a buffer's readable bytes are parsed, and offsets start at its reader index")
    func startsAtReaderIndex() throws {
        var buffer = ByteBuffer(string: "garbage{\"a\":\"long enough to be no small string\"}garbage")
        buffer.moveReaderIndex(forwardBy: 7)
        buffer.moveWriterIndex(to: buffer.writerIndex - 7)
        let root = try JSONDocument(parsing: buffer).root
        #expect(root["a"]?.string == "long enough to be no small string")
        #expect(root["a"]?.offset == 5)
        #expect(root.canonicalText == "{\"a\":\"long enough to be no small string\"}")
    }

    @Test("Blanks are allowed between all tokens")
    func acceptsBlanks() throws {
        let root = try JSONParsing.root(" \t\r\n{ \"a\" : [ 1 , 2 , { } , [ ] ] , \"b\" : null }\n ")
        #expect(root.canonicalText == "{\"a\":[1,2,{},[]],\"b\":null}")
    }

    @Test(
        "Long and escaped names are distinct, and their duplicates are found in objects of any size",
        arguments: [2, 8, 9, 40]
    )
    func longNames(count: Int) {
        let long = String(repeating: "name", count: 20)
        for name in [long, #"n\u0061me"#, "\(long)\\n", "name"] {
            let names = (0..<count).map { "\(name)\($0)" }
            let distinct = names.map { "\"\($0)\":0" }.joined(separator: ",")
            #expect(JSONParsing.refusal("{\(distinct)}".utf8) == nil)
            // The same name with its first letter escaped.
            let again = #""\u006e"# + String(names[0].dropFirst()) + #"":0"#
            let refusal = JSONParsing.refusal("{\(distinct),\(again)}".utf8)
            #expect(refusal?.code == .duplicateKey, "\(name)")
            #expect(refusal?.offset == distinct.utf8.count + 2)
            #expect(JSONParsing.refusal("{\(distinct),\"inner\":{\(again)}}".utf8) == nil)
        }
    }
}

@Suite("JSONPointer")
struct JSONPointerTests {
    @Test("The whole document's pointer is empty; names and positions are joined by slashes")
    func joinsTokens() {
        #expect(JSONPointer().description.isEmpty)
        #expect(JSONPointer().appending("notification").appending("badge").description == "/notification/badge")
        #expect(JSONPointer().appending("ids").appending(0).appending(12).description == "/ids/0/12")
    }

    @Test(
        "Names are escaped as RFC 6901 requires",
        arguments: [
            ("", "/"), ("a/b", "/a~1b"), ("m~n", "/m~0n"), ("~1", "/~01"), ("/", "/~1"), (" ", "/ "), ("k\"l", "/k\"l"),
            ("é", "/é"), ("~\u{301}", "/~0\u{301}"),
        ]
    )
    func escapesNames(name: String, expected: String) {
        #expect(JSONPointer().appending(name).description.utf8.elementsEqual(expected.utf8))
    }

    @Test("A name of 64 characters is kept whole, and a longer one is cut")
    func cutsLongNames() {
        let name = String(repeating: "n", count: 64)
        #expect(JSONPointer().appending(name).description == "/\(name)")
        #expect(JSONPointer().appending(name + "n").description == "/\(name)…")
        let marks = "n" + String(repeating: "\u{301}", count: 1_000)
        #expect(JSONPointer().appending(marks).description.unicodeScalars.count == 66)
    }

    @Test("Pointers are equal byte by byte, without normalisation")
    func comparesBytes() {
        let composed = JSONPointer().appending("\u{E9}")
        let decomposed = JSONPointer().appending("e\u{301}")
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed, JSONPointer().appending("\u{E9}")]).count == 2)
    }
}
