/// A text as it goes to files and programs, and as it goes to a terminal that shows colours.
struct StyledText: Sendable, Hashable {
    /// Without colours.
    private(set) var plain: String
    /// With colours.
    private(set) var coloured: String

    /// A text with one tone, or none.
    init(_ text: String, _ tone: Tone? = nil) {
        self.plain = text
        self.coloured = tone?.colour(text) ?? text
    }

    /// Texts one below the other.
    init(lines: [StyledText]) {
        self.plain = lines.map(\.plain).joined(separator: "\n")
        self.coloured = lines.map(\.coloured).joined(separator: "\n")
    }

    /// One text after another.
    static func + (left: StyledText, right: StyledText) -> StyledText {
        var sum = left
        sum.plain += right.plain
        sum.coloured += right.coloured
        return sum
    }
}
