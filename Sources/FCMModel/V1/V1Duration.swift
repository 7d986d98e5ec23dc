/// A span of time as protobuf writes it in JSON: decimal seconds, up to nine fractional digits, and an `s`.
struct V1Duration: Sendable, Hashable {
    /// The whole seconds; the fraction is cut.
    let seconds: Int
    /// Whether something was cut.
    let hasFraction: Bool

    /// The seconds, a fraction counting as a whole one: for delays, which must not end too early.
    var roundedUp: Int {
        self.hasFraction && self.seconds < .max ? self.seconds + 1 : self.seconds
    }

    /// Reads a text; `nil` for another form, a negative span, or one that no integer holds.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.last == UInt8(ascii: "s") else { return nil }
        let number = bytes.dropLast()
        let whole = number.prefix { $0 != UInt8(ascii: ".") }
        let fraction = number[whole.endIndex...]
        guard !whole.isEmpty, whole.allSatisfy(\.isDigit), let seconds = Int(String(decoding: whole, as: UTF8.self))
        else { return nil }
        if !fraction.isEmpty {
            let digits = fraction.dropFirst()
            guard (1...9).contains(digits.count), digits.allSatisfy(\.isDigit) else { return nil }
        }
        self.seconds = seconds
        self.hasFraction = fraction.contains { $0.isDigit && $0 != UInt8(ascii: "0") }
    }
}
