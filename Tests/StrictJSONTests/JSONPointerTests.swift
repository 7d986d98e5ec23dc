import StrictJSON
import Testing

@Suite("JSONPointer")
struct JSONPointerTests {
    @Test("The whole document's pointer is empty")
    func startsEmpty() {
        #expect(JSONPointer().description.isEmpty)
    }

    @Test("Names and positions are joined by slashes")
    func joinsTokens() {
        #expect(JSONPointer().appending("notification").appending("badge").description == "/notification/badge")
        #expect(JSONPointer().appending("ids").appending(0).appending(12).description == "/ids/0/12")
    }

    @Test(
        "Names are escaped as RFC 6901 asks",
        arguments: [
            ("", "/"), ("a/b", "/a~1b"), ("m~n", "/m~0n"), ("~1", "/~01"), ("/", "/~1"), (" ", "/ "), ("k\"l", "/k\"l"),
            ("é", "/é"), ("~\u{301}", "/~0\u{301}"),
        ]
    )
    func escapesNames(name: String, expected: String) {
        #expect(JSONPointer().appending(name).description.utf8.elementsEqual(expected.utf8))
    }

    @Test("A name of 64 characters stands whole, a longer one is cut")
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
