import GatewayCore
import Testing

struct TraceStateTests {
    private static let key = String(repeating: "k", count: 256)

    @Test(
        "A list of members is handed on without what means nothing",
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
        "What is malformed or too long is not handed on at all",
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

    @Test("Thirty-two members and 512 bytes are the most")
    func bounds() {
        let members = (0..<32).map { "k\($0)=v" }.joined(separator: ",")
        #expect(TraceState(members)?.text == members)
        let longest = "a=" + String(repeating: "v", count: 254) + ",b=" + String(repeating: "w", count: 253)
        #expect(longest.utf8.count == 512)
        #expect(TraceState(longest)?.text == longest)
        #expect(TraceState(longest + "w") == nil)
    }
}
