/// A JSON number reduced to its value: `1`, `1.0` and `10e-1` are one.
struct DecimalValue: Equatable {
    private let isNegative: Bool
    /// Without zeros at either end.
    private let digits: String
    private let exponent: Int

    /// Reduces a number as RFC 8259 has it.
    init(_ text: String) {
        let parts = text.lowercased().split(separator: "e", maxSplits: 1)
        let mantissa = parts.first.map { $0.drop { $0 == "-" }.split(separator: ".", maxSplits: 1) } ?? []
        let fraction = mantissa.count == 2 ? String(mantissa[1]) : ""
        var digits = (mantissa.first.map(String.init) ?? "") + fraction
        var exponent = (parts.count == 2 ? Int(parts[1]) ?? .max / 2 : 0) - fraction.count
        while digits.last == "0" {
            digits.removeLast()
            exponent += 1
        }
        self.digits = String(digits.drop { $0 == "0" })
        self.exponent = self.digits.isEmpty ? 0 : exponent
        self.isNegative = !self.digits.isEmpty && text.hasPrefix("-")
    }
}
