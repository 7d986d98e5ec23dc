import GatewayCore
import Testing

@Suite("Hex")
struct HexTests {
    @Test("Every byte has two lower-case digits", arguments: [([], ""), ([0x00, 0x0F, 0xA0, 0xFF], "000fa0ff")])
    func text(bytes: [UInt8], text: String) {
        #expect(Hex.text(bytes) == text)
    }
}
