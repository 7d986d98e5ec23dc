import Testing

@testable import PrometheusMetrics

@Suite("SeriesIdentity")
struct SeriesIdentityTests {
    @Test(
        "Label values are escaped",
        arguments: [
            ("plain", #"l="plain""#),
            ("", #"l="""#),
            (#"back\slash"#, #"l="back\\slash""#),
            (#"quo"te"#, #"l="quo\"te""#),
            ("line\nfeed", #"l="line\nfeed""#),
            ("return\r\nfeed", "l=\"return\r\\nfeed\""),
            (#"\n"#, #"l="\\n""#),
            ("{},= ü 😀", #"l="{},= ü 😀""#),
        ]
    )
    func escaping(value: String, rendered: String) {
        let identity = SeriesIdentity(name: "m", dimensions: [("l", value)], kind: .gauge)
        #expect(identity.labels == rendered)
    }

    @Test("Labels are sorted by name")
    func sorted() {
        let identity = SeriesIdentity(name: "m", dimensions: [("b", "1"), ("a", "2")], kind: .gauge)
        #expect(identity.labels == #"a="2",b="1""#)
        #expect(identity.labelNames == ["a", "b"])
        #expect(!identity.hasDuplicateLabels)
    }

    @Test("Labels that are the same once valid are noticed")
    func duplicates() {
        let identity = SeriesIdentity(name: "m", dimensions: [("a-b", "1"), ("c", "2"), ("a_b", "3")], kind: .gauge)
        #expect(identity.hasDuplicateLabels)
    }
}
