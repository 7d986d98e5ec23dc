import Testing

@testable import GatewayHTTP

struct HTMLTests {
    @Test(
        "Text never becomes markup",
        arguments: [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            (#"" onfocus="x"#, "&quot; onfocus=&quot;x"), ("it's & <b>", "it&#39;s &amp; &lt;b&gt;"),
            ("a\u{0}b\u{1B}c\u{85}d", "a\u{FFFD}b\u{FFFD}c\u{FFFD}d"), ("ü\n\t😀", "ü\n\t😀"), ("", ""),
        ]
    )
    func escaped(text: String, shown: String) {
        let html: HTML = "<p title=\"\(text)\">\(text)</p>"
        #expect(html.text == "<p title=\"\(shown)\">\(shown)</p>")
        let optional: String? = text
        let wrapped: HTML = "\(optional)"
        #expect(wrapped.text == shown)
    }

    @Test("Pieces of HTML are interpolated as they are, and numbers and nothing as text")
    func pieces() {
        let (one, none): (HTML, HTML?) = ("<b>\("<")</b>", nil)
        let html: HTML = "\(one)\([one, one])\(none)\(-7)\(String?.none)"
        #expect(html.text == "<b>&lt;</b><b>&lt;</b><b>&lt;</b>-7")
    }

    @Test("JSON is laid out in lines, whatever its strings hold")
    func layout() {
        let json = #"{"a":[1,"b:{,\"]\\"],"c":{}}"#
        let lines = ["{", "  \"a\": [", "    1,", #"    "b:{,\"]\\""#, "  ],", "  \"c\": {", "    ", "  }", "}"]
        #expect(JSONLayout.indented(json) == lines.joined(separator: "\n"))
    }
}
