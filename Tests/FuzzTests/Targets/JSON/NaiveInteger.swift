/// The whole number that a JSON number stands for, by moving digits about.
enum NaiveInteger {
    /// The value; nil for fractions and for what does not fit.
    static func value(of text: [UInt8]) -> Int? {
        let isNegative = text.first == UInt8(ascii: "-")
        let parts = text.drop { $0 == UInt8(ascii: "-") }
            .split(maxSplits: 1, omittingEmptySubsequences: false) { $0 | 0x20 == UInt8(ascii: "e") }
        let mantissa = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        var digits = Array(mantissa.joined())
        guard digits.contains(where: { $0 != UInt8(ascii: "0") }) else { return 0 }
        var power = -(mantissa.count > 1 ? mantissa[1].count : 0)
        if parts.count > 1 {
            let exponent = String(decoding: parts[1], as: UTF8.self)
            // No text that is tried has digits enough to make up for a larger exponent.
            power +=
                Int(exponent).map { min(max($0, -100_000), 100_000) } ?? (exponent.hasPrefix("-") ? -100_000 : 100_000)
        }
        while power < 0, digits.last == UInt8(ascii: "0") {
            digits.removeLast()
            power += 1
        }
        digits = Array(digits.drop { $0 == UInt8(ascii: "0") })
        guard power >= 0, digits.count + power < 30 else { return nil }
        digits += Array(repeating: UInt8(ascii: "0"), count: power)
        return Int((isNegative ? "-" : "") + String(decoding: digits, as: UTF8.self))
    }
}
