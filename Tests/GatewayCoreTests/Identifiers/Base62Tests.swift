import Testing

@testable import GatewayCore

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

    @Test("The alphabet holds 62 characters, and all of them belong to it")
    func alphabet() {
        #expect(Set(Base62.alphabet).count == 62)
        #expect(Base62.contains(String(decoding: Base62.alphabet, as: UTF8.self)))
    }

    @Test("Nothing else belongs to it", arguments: ["_", "-", " ", "/", ":", "@", "[", "`", "{", "é", "0\u{301}"])
    func others(text: String) {
        #expect(!Base62.contains(text))
    }
}
