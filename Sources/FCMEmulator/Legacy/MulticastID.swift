/// Identifies one request to devices: a positive integer that fits a double's mantissa of 53 bits.
struct MulticastID: Equatable {
    let value: Int64

    /// A number nobody has seen before, in all likelihood.
    static func random() -> Self {
        Self(value: .random(in: 1...(1 << 53 - 1)))
    }
}
