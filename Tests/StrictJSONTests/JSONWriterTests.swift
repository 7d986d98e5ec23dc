import NIOCore
import StrictJSON
import Testing

@Suite("JSONWriter")
struct JSONWriterTests {
    @Test("A number with its unit is a string")
    func numberWithUnit() {
        var writer = JSONWriter()
        writer.beginArray()
        writer.string(3_600, unit: "s")
        writer.string(0)
        writer.endArray()
        #expect(String(buffer: writer.finish()) == #"["3600s","0"]"#)
    }

    @Test(
        "A text in a buffer is written as by the writer",
        arguments: ["", "token", "a\"b", "\n", "zwölf", "0123456789\\"]
    )
    func textInBuffer(text: String) {
        var writer = JSONWriter()
        writer.string(text)
        var buffer = ByteBuffer()
        buffer.writeJSONString(text)
        #expect(buffer == writer.finish())
    }

    @Test("Plain text is printable ASCII without quotes and backslashes, wherever the other byte stands")
    func plainText() {
        for length in 0...20 {
            for place in 0..<max(length, 1) {
                for byte in UInt8.min...UInt8.max {
                    var bytes = Array(repeating: UInt8(ascii: "a"), count: length)
                    if length > 0 { bytes[place] = byte }
                    let isPlain = bytes.allSatisfy { (0x20...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
                    #expect(bytes.span.isPlainText == isPlain, "byte \(byte) at \(place) of \(length)")
                }
            }
        }
    }

    @Test("Commas and colons are placed between all kinds of values")
    func placesPunctuation() throws {
        var writer = JSONWriter(reservingCapacity: 64)
        writer.beginObject()
        writer.key("string")
        writer.string("x")
        writer.member("text", "y")
        writer.member("count", -12)
        writer.member("flag", true)
        writer.key("list")
        writer.beginArray()
        writer.integer(1)
        writer.integer(UInt64.max)
        writer.bool(false)
        writer.null()
        writer.number(try #require(JSONNumber(text: "1.50e+2")))
        writer.beginObject()
        writer.endObject()
        writer.beginArray()
        writer.endArray()
        writer.string("last")
        writer.endArray()
        writer.key("inner" as String)
        writer.beginObject()
        writer.member("a", Int.min)
        writer.key("b")
        writer.value(try JSONParsing.root(" [ 1 , { \"z\" : 2 , \"a\" : null } ] "))
        writer.endObject()
        writer.endObject()
        let expected = """
            {"string":"x","text":"y","count":-12,"flag":true,"list":[1,18446744073709551615,false,null,1.50e+2,{},[],\
            "last"],"inner":{"a":-9223372036854775808,"b":[1,{"z":2,"a":null}]}}
            """
        #expect(String(buffer: writer.finish()) == expected)
    }

    @Test("A scalar may be the root")
    func writesScalarRoots() {
        #expect(Self.written { $0.string("x") } == "\"x\"")
        #expect(Self.written { $0.integer(0) } == "0")
        #expect(Self.written { $0.bool(false) } == "false")
        #expect(Self.written { $0.null() } == "null")
    }

    @Test(
        "Quotes, backslashes and controls are escaped, and nothing else",
        arguments: [
            ("", ""), ("plain", "plain"), ("a/b", "a/b"), ("\"", "\\\""), ("\\", "\\\\"),
            ("\u{8}\u{C}\n\r\t", "\\b\\f\\n\\r\\t"),
            ("\u{0}\u{1}\u{B}\u{E}\u{F}\u{10}\u{1A}\u{1F}", "\\u0000\\u0001\\u000b\\u000e\\u000f\\u0010\\u001a\\u001f"),
            ("\u{7F}\u{80}é€𝄞\u{2028}\u{FEFF}", "\u{7F}\u{80}é€𝄞\u{2028}\u{FEFF}"), ("e\u{301}", "e\u{301}"),
            ("a long text without any escapes in it", "a long text without any escapes in it"),
            ("a long text with an escape at its end\n", "a long text with an escape at its end\\n"),
        ]
    )
    func escapes(value: String, expected: String) throws {
        #expect(Self.written { $0.string(value) }.utf8.elementsEqual("\"\(expected)\"".utf8))
        let member = Self.written { writer in
            writer.beginObject()
            writer.key(value)
            writer.null()
            writer.endObject()
        }
        #expect(member.utf8.elementsEqual("{\"\(expected)\":null}".utf8))
    }

    @Test("Every byte that needs an escape is found at every position")
    func findsEveryEscape() throws {
        for value in (UInt8(0)..<0x20) + [0x22, 0x5C] {
            for position in 0..<20 {
                let text =
                    String(repeating: "é", count: position) + String(Unicode.Scalar(value))
                    + String(repeating: "x", count: 20 - position)
                let written = Self.written { $0.string(text) }
                #expect(try JSONParsing.root(written).string == text)
            }
        }
    }

    @Test("Calls that would not make JSON stop the process")
    func refusesMisuse() async {
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.beginObject()
            _ = writer.finish()
        }
        await #expect(processExitsWith: .failure) {
            _ = JSONWriter().finish()
        }
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.beginObject()
            writer.endArray()
        }
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.beginObject()
            writer.string("a value without a name")
        }
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.beginObject()
            writer.key("a")
            writer.endObject()
        }
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.beginArray()
            writer.key("a name in an array")
        }
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.null()
            writer.null()
        }
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            for _ in 0...64 {
                writer.beginArray()
            }
        }
    }

    @Test("Nesting of 64 levels is possible")
    func nests() {
        let text = Self.written { writer in
            for _ in 0..<32 {
                writer.beginArray()
                writer.beginObject()
                writer.key("a")
            }
            writer.null()
            for _ in 0..<32 {
                writer.endObject()
                writer.endArray()
            }
        }
        #expect(text == String(repeating: "[{\"a\":", count: 32) + "null" + String(repeating: "}]", count: 32))
    }

    private static func written(_ write: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        write(&writer)
        return String(buffer: writer.finish())
    }

    @Test("The byte count of a list is the length of its text")
    func countsBytes() {
        let lists = [
            [], [""], ["a", "é"], ["\"\\/\u{8}\u{9}\u{A}\u{C}\u{D}"], ["\u{0}\u{1}\u{B}\u{1F}\u{7F}", "", "\u{2028}"],
        ]
        for list in lists {
            var writer = JSONWriter()
            writer.beginArray()
            for text in list { writer.string(text) }
            writer.endArray()
            #expect(JSONWriter.byteCount(of: list) == writer.finish().readableBytes)
        }
    }

    @Test("A parsed value keeps its escapes")
    func keepsEscapes() throws {
        var writer = JSONWriter()
        writer.value(try JSONParsing.root(#"{"\u0061" : ["\/\u00e9", "\n"]}"#))
        #expect(String(buffer: writer.finish()) == #"{"\u0061":["\/\u00e9","\n"]}"#)
    }
}
