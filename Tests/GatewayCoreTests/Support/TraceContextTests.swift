import GatewayCore
import Testing

struct TraceParentTests {
    private static let id = "4bf92f3577b34da6a3ce929d0e0e4736"

    @Test(
        "A traceparent is parsed and written as version 00",
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
        "Any other text is not a traceparent",
        arguments: [
            "", "00", "00-\(id)", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-\(id)-0000000000000000-01", "ff-\(id)-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "00-\(id.dropLast())-00f067aa0ba902b7-01",
            "00-\(id)0-00f067aa0ba902b7-01", "00-\(id)-00f067aa0ba902b7-01-more", "00-\(id)-00f067aa0ba902b7-01-",
            "00-\(id)-00f067aa0ba902b7-1", "00-\(id)-00f067aa0ba902b7-0x", "00-\(id)-00F067AA0BA902B7-01",
            "00-zzf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", " 00-\(id)-00f067aa0ba902b7-01",
            "0-\(id)-00f067aa0ba902b7-01", "00_\(id)_00f067aa0ba902b7_01",
            // Two fields of the same name arrive as one with a comma.
            "00-\(id)-00f067aa0ba902b7-01, 00-\(id)-00f067aa0ba902b7-01", "00-\(id)-00f067aa0ba902b7-01\r\nX: y",
            "00-４bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ]
    )
    func malformed(text: String) {
        #expect(TraceParent(text) == nil)
    }
}

struct TraceStateTests {
    private static let key = String(repeating: "k", count: 256)

    @Test(
        "A tracestate is passed on without empty members and surrounding blanks",
        arguments: [
            ("a=1", "a=1"), ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            (" a=1 , b=2\t", "a=1,b=2"), ("a=1,,b=2,", "a=1,b=2"),
            ("fw529a3039@dt=FfD,0x_-*/=v", "fw529a3039@dt=FfD,0x_-*/=v"),
            ("a=x y", "a=x y"), ("\(key)=v", "\(key)=v"), ("a=\(key)", "a=\(key)"),
        ]
    )
    func wellFormed(text: String, expected: String) {
        #expect(TraceState(text)?.text == expected)
    }

    @Test(
        "A malformed or too long tracestate is dropped",
        arguments: [
            "", ",", " , ", "a", "=1", "a=", "A=1", "a=1,a=2", "a b=1", "a=1=2", "a=é", "é=1", "a=\u{1}", "_a=1",
            "a=1\r\nX-Injected: 1", "\(key)k=v", "a=\(key)k", "a=1,b",
            (0..<33).map { "k\($0)=v" }.joined(separator: ","),
            (0..<20).map { "k\($0)=" + String(repeating: "v", count: 24) }.joined(separator: ","),
        ]
    )
    func malformed(text: String) {
        #expect(TraceState(text) == nil)
    }

    @Test("A tracestate has at most 32 members and 512 bytes")
    func bounds() {
        let members = (0..<32).map { "k\($0)=v" }.joined(separator: ",")
        #expect(TraceState(members)?.text == members)
        let longest = "a=" + String(repeating: "v", count: 254) + ",b=" + String(repeating: "w", count: 253)
        #expect(longest.utf8.count == 512)
        #expect(TraceState(longest)?.text == longest)
        #expect(TraceState(longest + "w") == nil)
    }
}
