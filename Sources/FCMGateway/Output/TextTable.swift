import StrictJSON

extension StyledText {
    /// The meaning of a word for its colour on a terminal.
    enum Tone: Sendable, Hashable {
        case good
        case caution
        case bad

        /// The tone of a word in a column of an answer; `nil` for a neutral word.
        init?(_ word: String, column: String) {
            switch (column, word) {
            case ("status", "accepted"), ("status", "ok"), ("outcome", "accepted"), ("outcome", "done"),
                ("finding", "valid"):
                self = .good
            case ("status", "warning"), ("outcome", "partial"), ("outcome", "unknown"), ("disabled", "true"):
                self = .caution
            case ("status", "rejected"), ("status", "problem"), ("outcome", "rejected"), ("outcome", "failed"),
                ("finding", _):
                self = .bad
            default:
                return nil
            }
        }

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
}

/// A text in two forms: plain for files and programs, coloured for a terminal.
struct StyledText: Sendable, Hashable {
    private(set) var plain: String
    private(set) var coloured: String

    init(_ text: String, _ tone: Tone? = nil) {
        self.plain = text
        self.coloured = tone?.colour(text) ?? text
    }

    init(lines: [StyledText]) {
        self.plain = lines.map(\.plain).joined(separator: "\n")
        self.coloured = lines.map(\.coloured).joined(separator: "\n")
    }

    static func + (left: StyledText, right: StyledText) -> StyledText {
        var sum = left
        sum.plain += right.plain
        sum.coloured += right.coloured
        return sum
    }
}

/// Aligned columns under upper-case titles.
struct TextTable {
    private let rows: [[StyledText]]

    init(columns: [String], objects: [JSONValue]) {
        let titles = columns.map { StyledText($0.uppercased()) }
        self.rows =
            [titles]
            + objects.map { object in
                columns.map { column in
                    let cell = object[column]?.cell ?? ""
                    return StyledText(cell, StyledText.Tone(cell, column: column))
                }
            }
    }

    init(object: JSONValue, columns: [String]) {
        let members = columns.filter { object[$0] != nil }
        self.rows = members.map { column in
            let cell = object[column]?.cell ?? ""
            return [StyledText("\(column):"), StyledText(cell, StyledText.Tone(cell, column: column))]
        }
    }

    init(titles: [String], rows: [[String]]) {
        self.init(titles: titles, rows: rows.map { $0.map { StyledText($0) } })
    }

    init(titles: [String], rows: [[StyledText]]) {
        self.rows = [titles.map { StyledText($0) }] + rows
    }

    var text: String { self.styled.plain }

    /// The lines, without trailing blanks, in the tones of their cells.
    var styled: StyledText {
        let count = self.rows.map(\.count).max() ?? 0
        let widths = (0..<count)
            .map { column in
                self.rows.map { column < $0.count ? $0[column].plain.count : 0 }.max() ?? 0
            }
        return StyledText(lines: self.rows.map { Self.line($0, widths) })
    }

    /// Returns a row's cells as one line. Each cell but the last is padded to the next column.
    private static func line(_ row: [StyledText], _ widths: [Int]) -> StyledText {
        let last = row.lastIndex { !$0.plain.isEmpty } ?? -1
        var line = StyledText("")
        for (index, (cell, width)) in zip(row, widths).enumerated() where index <= last {
            let blanks = index < last ? width - cell.plain.count + 2 : 0
            line = line + cell + StyledText(String(repeating: " ", count: blanks))
        }
        return line
    }
}
