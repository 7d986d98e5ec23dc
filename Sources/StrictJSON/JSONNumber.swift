import NIOCore

/// A JSON number in its exact spelling. It is never rounded.
package struct JSONNumber: Hashable, Sendable {
    /// The number as it was written, such as `1.0` or twenty digits.
    package let text: String

    package init?(text: String) {
        let buffer = ByteBuffer(string: text)
        let bytes = buffer.readableBytesUInt8Span
        guard let end = try? JSONScanner.number(bytes, from: 0), end == bytes.count else { return nil }
        self.text = text
    }

    init(checked text: String) {
        self.text = text
    }

    /// True if the number has only digits and at most a minus sign: no fraction, no exponent.
    package var isPlainInteger: Bool {
        self.text.utf8.allSatisfy { JSONByteClass.isDigit($0) || $0 == UInt8(ascii: "-") }
    }

    /// The exact value if it is integral and fits, otherwise nil.
    ///
    /// `60`, `60.0`, `6e1` and `600e-1` are all 60, and `-0` is 0. Exponents of any magnitude are handled without
    /// overflow, in time proportional to the length of the text.
    package var integer: Int? {
        // Digits are accumulated downwards from zero, since the negative range is larger. Zeros wait until a further
        // digit shows that they are not trailing. The accumulated digits end in a digit other than zero, so a remaining
        // negative power of ten means a fraction.
        var value = 0
        var fits = true
        var isNegative = false
        var trailingZeros = 0
        var fractionDigits = 0
        var isInFraction = false
        var bytes = self.text.utf8.makeIterator()
        var exponent = 0
        scan: while let byte = bytes.next() {
            switch byte {
            case UInt8(ascii: "-"):
                isNegative = true
            case UInt8(ascii: "."):
                isInFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                exponent = Self.exponent(from: &bytes)
                break scan
            default:
                fractionDigits += isInFraction ? 1 : 0
                let digit = Int(byte) - Int(UInt8(ascii: "0"))
                if digit == 0 {
                    trailingZeros += 1
                } else {
                    fits = fits && Self.shift(&value, by: trailingZeros + 1) && Self.subtract(digit, from: &value)
                    trailingZeros = 0
                }
            }
        }
        guard fits else { return nil }
        guard value != 0 else { return 0 }
        let power = exponent - fractionDigits + trailingZeros
        guard power >= 0, Self.shift(&value, by: power) else { return nil }
        if isNegative { return value }
        // Only the lowest value has no positive counterpart.
        return value == .min ? nil : -value
    }

    /// The same text for every spelling of a value: its digits without zeros at either end, and a power of ten.
    ///
    /// `60`, `60.0`, `6e1` and `600e-1` are all `6e1`, and `-0` is `0`. A number whose exponent is 2⁴⁰ or more, or
    /// -2⁴⁰ or less, keeps its spelling.
    package var canonicalText: String {
        let parts = self.text.utf8.split(omittingEmptySubsequences: false) {
            $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E")
        }
        var exponent = 0
        if parts.count > 1 {
            var bytes = String(Substring(parts[1])).utf8.makeIterator()
            exponent = Self.exponent(from: &bytes)
            guard abs(exponent) < 1 << 40 else { return self.text }
        }
        let isNegative = parts[0].first == UInt8(ascii: "-")
        let point = parts[0].firstIndex(of: UInt8(ascii: "."))
        if let point { exponent -= parts[0].distance(from: point, to: parts[0].endIndex) - 1 }
        let digits = parts[0].filter(JSONByteClass.isDigit).drop { $0 == UInt8(ascii: "0") }
        guard let last = digits.lastIndex(where: { $0 != UInt8(ascii: "0") }) else { return "0" }
        exponent += digits.distance(from: last, to: digits.endIndex) - 1
        return "\(isNegative ? "-" : "")\(String(decoding: digits[...last], as: UTF8.self))e\(exponent)"
    }

    /// Reads an exponent's sign and digits. Limits the result to ±2⁴⁰. No text has enough digits for a number with
    /// such an exponent to be an `Int` other than 0.
    private static func exponent(from bytes: inout String.UTF8View.Iterator) -> Int {
        var exponent = 0
        var isNegative = false
        while let byte = bytes.next() {
            switch byte {
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "+"): break
            default: exponent = min(exponent * 10 + Int(byte) - Int(UInt8(ascii: "0")), 1 << 40)
            }
        }
        return isNegative ? -exponent : exponent
    }

    /// Multiplies by a power of ten. Returns false if the result does not fit.
    private static func shift(_ value: inout Int, by power: Int) -> Bool {
        guard value != 0 else { return true }
        // At most nineteen digits fit.
        guard power < 19 else { return false }
        for _ in 0..<power {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            guard !overflow else { return false }
            value = product
        }
        return true
    }

    private static func subtract(_ digit: Int, from value: inout Int) -> Bool {
        let (difference, overflow) = value.subtractingReportingOverflow(digit)
        value = difference
        return !overflow
    }
}
