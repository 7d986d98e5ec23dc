/// What a word says of the state of something, for its colour on a terminal.
enum Tone: Sendable, Hashable {
    /// All is well.
    case good
    /// Worth a look.
    case caution
    /// Something is wrong.
    case bad

    /// The tone of a word in a column of an answer; `nil` for what only informs.
    init?(_ word: String, column: String) {
        switch (column, word) {
        case ("status", "accepted"), ("status", "ok"), ("outcome", "accepted"), ("outcome", "done"),
            ("finding", "valid"):
            self = .good
        case ("status", "warning"), ("outcome", "partial"), ("disabled", "true"):
            self = .caution
        case ("status", "rejected"), ("status", "problem"), ("outcome", "rejected"), ("outcome", "failed"),
            ("finding", _):
            self = .bad
        default:
            return nil
        }
    }

    /// A text between the sequences that colour it and end the colour.
    func colour(_ text: String) -> String {
        text.isEmpty ? "" : "\u{1B}[\(self.parameter)m\(text)\u{1B}[0m"
    }

    /// The parameter of ECMA-48's Select Graphic Rendition: green, yellow or red.
    private var parameter: Int {
        switch self {
        case .good: 32
        case .caution: 33
        case .bad: 31
        }
    }
}
