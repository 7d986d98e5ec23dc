import Foundation
import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("UUIDv7")
struct UUIDv7Tests {
    @Test("The text is a UUID of version 7 and the RFC's variant")
    func form() throws {
        for _ in 0..<500 {
            let text = UUIDv7.generate(at: .sample)
            #expect(text.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
            #expect(try #require(UUID(uuidString: text)).uuidString.lowercased() == text)
        }
    }

    @Test(
        "The first 48 bits are the milliseconds since 1970",
        arguments: [
            (0, "00000000-0000"), (1_645_557_742_000, "017f22e2-79b0"), (281_474_976_710_655, "ffffffff-ffff"),
        ] as [(Int64, String)]
    )
    func time(milliseconds: Int64, start: String) {
        #expect(UUIDv7.generate(at: Timestamp(microseconds: milliseconds * 1_000 + 999)).hasPrefix(start))
    }

    @Test("Later identifiers sort after earlier ones")
    func order() {
        let clock = ManualClock()
        let identifiers = (0..<1_000)
            .map { _ in
                clock.advance(by: .milliseconds(1))
                return UUIDv7.generate(at: clock.now())
            }
        #expect(identifiers == identifiers.sorted())
    }

    @Test("Identifiers of the same moment differ, and every random digit takes all its values")
    func random() {
        let identifiers = (0..<2_000).map { _ in Array(UUIDv7.generate(at: .sample)) }
        #expect(Set(identifiers).count == identifiers.count)
        for position in [15, 16, 17, 20, 21, 22] + Array(24..<36) {
            #expect(Set(identifiers.map { $0[position] }).count == 16, "position \(position)")
        }
        #expect(Set(identifiers.map { $0[19] }) == ["8", "9", "a", "b"])
    }
}

@Suite("Base62")
struct Base62Tests {
    @Test(
        "Numbers are written with digits, then capitals, then small letters",
        arguments: [
            (0, 6, "000000"), (9, 1, "9"), (10, 1, "A"), (35, 1, "Z"), (36, 1, "a"), (61, 6, "00000z"),
            (62, 6, "000010"), (.max, 6, "4gfFC3"), (.max, 7, "04gfFC3"),
        ] as [(UInt32, Int, String)]
    )
    func text(number: UInt32, width: Int, text: String) {
        #expect(Base62.text(number, width: width) == text)
    }

    @Test("The alphabet has 62 characters, and the value of each is its position")
    func alphabet() {
        #expect(Base62.alphabet.count == 62)
        for (number, digit) in Base62.alphabet.enumerated() { #expect(Base62.number([digit]) == UInt64(number)) }
    }
}

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
        #expect(CRC32.checksum(Array(text.utf8)[...]) == checksum)
    }

    @Test("The checksum covers bytes of every value")
    func allBytes() {
        #expect(CRC32.checksum(Array(UInt8.min...UInt8.max)[...]) == 0x2905_8C73)
    }
}

@Suite("Hex")
struct HexTests {
    @Test("Every byte has two lower-case digits", arguments: [([], ""), ([0x00, 0x0F, 0xA0, 0xFF], "000fa0ff")])
    func text(bytes: [UInt8], text: String) {
        #expect(Hex.text(bytes) == text)
        #expect(Hex.bytes(text) == bytes)
    }

    @Test("A text other than pairs of lower-case digits is refused", arguments: ["0", "0g", "AB", "0x", " 0", "é"])
    func bytes(text: String) {
        #expect(Hex.bytes(text) == nil)
    }
}
