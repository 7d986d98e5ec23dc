import GatewayCore
import Testing

@Suite("Hex")
struct HexTests {
    @Test("Every byte has two lower-case digits", arguments: [([], ""), ([0x00, 0x0F, 0xA0, 0xFF], "000fa0ff")])
    func text(bytes: [UInt8], text: String) {
        #expect(Hex.text(bytes) == text)
        #expect(Hex.bytes(text) == bytes)
    }

    @Test("What is no row of pairs of lower-case digits has no bytes", arguments: ["0", "0g", "AB", "0x", " 0", "é"])
    func bytes(text: String) {
        #expect(Hex.bytes(text) == nil)
    }
}
