import Testing

@testable import GatewayCore

@Suite("CRC32")
struct CRC32Tests {
    @Test(
        "Known texts have their known checksums",
        arguments: [
            ("", 0), ("a", 0xE8B7_BE43), ("123456789", 0xCBF4_3926),
            ("The quick brown fox jumps over the lazy dog", 0x414F_A339),
        ] as [(String, UInt32)]
    )
    func knownAnswers(text: String, checksum: UInt32) {
        #expect(CRC32.checksum(text.utf8) == checksum)
    }

    @Test("Bytes of every value count")
    func allBytes() {
        #expect(CRC32.checksum(UInt8.min...UInt8.max) == 0x2905_8C73)
    }
}
