extension UInt8 {
    /// `0` to `9`.
    package var isDigit: Bool { UInt8(ascii: "0") <= self && self <= UInt8(ascii: "9") }

    /// `a` to `z` and `A` to `Z`.
    package var isLetter: Bool { UInt8(ascii: "a") <= self | 0x20 && self | 0x20 <= UInt8(ascii: "z") }

    /// `a` to `z` and `0` to `9`.
    package var isLowerAlphanumeric: Bool {
        (UInt8(ascii: "a") <= self && self <= UInt8(ascii: "z")) || self.isDigit
    }

    /// Letters, digits and `- . _ ~` (RFC 3986, 2.3).
    package var isUnreserved: Bool {
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: self.isLetter || self.isDigit
        }
    }

    /// The value of a hexadecimal digit in either case.
    package var hexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension StringProtocol {
    /// Whether the text is one or more ASCII digits.
    package var isDigits: Bool { !self.isEmpty && self.utf8.allSatisfy(\.isDigit) }
}

extension Int {
    /// The number that a text of ASCII digits stands for; `nil` for any other text, and for a number too large.
    ///
    /// The initialiser of the standard library takes a sign as well, which no field or parameter here has.
    package init?(digits text: some StringProtocol) {
        guard text.isDigits else { return nil }
        self.init(text)
    }
}
