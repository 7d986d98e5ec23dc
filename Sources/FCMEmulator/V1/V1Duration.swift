/// A protobuf duration as JSON writes it: decimal seconds, up to nine fractional digits, the suffix `s`.
struct V1Duration: Equatable {
    private static let maxSeconds: Int64 = 315_576_000_000

    /// Whole seconds, rounded down for durations that are not negative.
    let seconds: Int64

    let isNegative: Bool

    /// Whether there is a fraction beside the whole seconds.
    let hasFraction: Bool

    /// Reads a text, nil if it is no duration.
    init?(_ text: String) {
        guard text.utf8.last == UInt8(ascii: "s") else { return nil }
        var digits = text.utf8.dropLast()
        self.isNegative = digits.first == UInt8(ascii: "-")
        if self.isNegative { digits = digits.dropFirst() }
        let parts = digits.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x30...0x39).contains($0) } }),
            let whole = parts.first, let seconds = Int64(String(decoding: whole, as: UTF8.self)),
            seconds <= Self.maxSeconds
        else { return nil }
        let fraction = parts.count == 2 ? parts[1] : ""[...].utf8
        guard fraction.count <= 9 else { return nil }
        self.seconds = seconds
        self.hasFraction = fraction.contains { $0 != 0x30 }
    }
}
