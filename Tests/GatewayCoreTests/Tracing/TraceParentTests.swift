import GatewayCore
import Testing

struct TraceParentTests {
    private static let id = "4bf92f3577b34da6a3ce929d0e0e4736"

    @Test(
        "A caller's place in its trace is read, and written as version 00",
        arguments: [
            ("00-\(id)-00f067aa0ba902b7-01", "01", true), ("00-\(id)-00f067aa0ba902b7-00", "00", false),
            ("00-\(id)-00f067aa0ba902b7-02", "02", false), ("00-\(id)-00f067aa0ba902b7-ff", "ff", true),
            ("01-\(id)-00f067aa0ba902b7-01-what-the-future-will-be", "01", true),
            ("cc-\(id)-00f067aa0ba902b7-02", "00", false), ("cc-\(id)-00f067aa0ba902b7-ff-", "01", true),
        ]
    )
    func wellFormed(text: String, flags: String, isSampled: Bool) throws {
        let parent = try #require(TraceParent(text))
        #expect(parent.traceID == Self.id)
        #expect(parent.spanID == "00f067aa0ba902b7")
        #expect(parent.isSampled == isSampled)
        #expect(parent.text == "00-\(Self.id)-00f067aa0ba902b7-\(flags)")
    }

    @Test(
        "Any other text is no parent",
        arguments: [
            "", "00", "00-\(id)", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-\(id)-0000000000000000-01", "ff-\(id)-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "00-\(id.dropLast())-00f067aa0ba902b7-01",
            "00-\(id)0-00f067aa0ba902b7-01", "00-\(id)-00f067aa0ba902b7-01-more", "00-\(id)-00f067aa0ba902b7-01-",
            "00-\(id)-00f067aa0ba902b7-1", "00-\(id)-00f067aa0ba902b7-0x", "00-\(id)-00F067AA0BA902B7-01",
            "00-zzf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", " 00-\(id)-00f067aa0ba902b7-01",
            "0-\(id)-00f067aa0ba902b7-01", "00_\(id)_00f067aa0ba902b7_01",
            // A field that is there twice comes as one with a comma.
            "00-\(id)-00f067aa0ba902b7-01, 00-\(id)-00f067aa0ba902b7-01", "00-\(id)-00f067aa0ba902b7-01\r\nX: y",
            "00-４bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ]
    )
    func malformed(text: String) {
        #expect(TraceParent(text) == nil)
    }
}
