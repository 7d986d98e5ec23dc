/// Draws texts that a careless encoder would damage.
enum RandomText {
    /// Ranges of code points, one as likely as another: controls, what JSON escapes, every length of UTF-8, marks that
    /// combine, separators that some parsers take for line ends, emoji with their joiners, the ends of planes.
    private static let ranges: [ClosedRange<UInt32>] = [
        0x00...0x1F, 0x20...0x7E, 0x22...0x22, 0x5C...0x5C, 0x2F...0x2F, 0x7F...0x9F, 0xA0...0x7FF, 0x300...0x36F,
        0x800...0xD7FF, 0x200B...0x2029, 0xE000...0xFFFF, 0xFEFF...0xFEFF, 0xFE0F...0xFE0F, 0x1F300...0x1FAFF,
        0x1F3FB...0x1F3FF, 0x10000...0x10FFFF,
    ]

    /// Draws a text.
    ///
    /// - Parameters:
    ///   - lengths: how many code points it may have.
    ///   - random: where chance comes from.
    /// - Returns: a text of so many code points.
    static func draw(_ lengths: ClosedRange<Int>, using random: inout SplitMix64) -> String {
        var text = String.UnicodeScalarView()
        for _ in 0..<(lengths.lowerBound + random.below(lengths.count)) {
            let range = random.pick(Self.ranges)
            let point = range.lowerBound + UInt32(random.below(range.count))
            // No range holds a surrogate, so nothing is ever left out.
            if let scalar = Unicode.Scalar(point) { text.append(scalar) }
        }
        return String(text)
    }

    /// Draws characters that topics may have.
    static func topic(_ lengths: ClosedRange<Int>, using random: inout SplitMix64) -> String {
        let characters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~%")
        return String((0..<(lengths.lowerBound + random.below(lengths.count))).map { _ in random.pick(characters) })
    }
}
