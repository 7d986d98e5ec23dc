/// Text of `0-9 A-Z a-z`, safe in headers, shells and double clicks.
enum Base62 {
    static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    /// A number in base 62, padded with leading zeros; digits beyond the width are dropped.
    static func text(_ number: UInt32, width: Int) -> String {
        var digits = [UInt8](repeating: Self.alphabet[0], count: width)
        var rest = number
        for position in digits.indices.reversed() {
            digits[position] = Self.alphabet[Int(rest % 62)]
            rest /= 62
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// The number of at most ten digits in base 62; `nil` where one is none.
    static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for digit in digits {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = digit - UInt8(ascii: "A") + 10
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = digit - UInt8(ascii: "a") + 36
            default: return nil
            }
            number = number * 62 + UInt64(value)
        }
        return number
    }

    /// Whether every byte is one of the alphabet's.
    static func contains(_ text: some StringProtocol) -> Bool {
        text.utf8.allSatisfy(self.contains)
    }

    /// Whether a byte is one of the alphabet's.
    static func contains(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default:
            false
        }
    }
}
