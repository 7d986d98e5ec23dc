import Testing

@testable import GatewayHTTP

struct CursorTests {
    @Test("A cursor reads back what it was made from", arguments: ["1.5", "demo", "", "???>>>", "ü~"])
    func roundTrip(content: String) {
        let text = Cursor.text(of: content)
        #expect(Cursor.content(of: text) == content)
        #expect(text.utf8.allSatisfy { $0.isURLSafe })
    }

    @Test("Made-up text is no cursor", arguments: ["*", "a", "=", "MQ==", "MR", "a b", "/////w", "gICA"])
    func madeUp(text: String) {
        #expect(Cursor.content(of: text) == nil)
    }
}

extension UInt8 {
    /// Whether the byte may stand unescaped in a query.
    fileprivate var isURLSafe: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default:
            false
        }
    }
}
