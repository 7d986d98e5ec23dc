/// Aligned columns under upper-case titles.
struct TextTable {
    private let rows: [[String]]

    /// Creates a table with one row an object, whose members are the columns.
    init(columns: [String], objects: [JSONValue]) {
        let titles = columns.map { $0.uppercased() }
        self.rows = [titles] + objects.map { object in columns.map { object[$0]?.cell ?? "" } }
    }

    /// Creates a table with one row a member, for a single object.
    init(object: JSONValue, columns: [String]) {
        let members = columns.filter { object[$0] != nil }
        self.rows = members.map { ["\($0):", object[$0]?.cell ?? ""] }
    }

    /// Creates a table of ready rows below titles.
    init(titles: [String], rows: [[String]]) {
        self.rows = [titles] + rows
    }

    /// The lines, without trailing blanks.
    var text: String {
        let count = self.rows.map(\.count).max() ?? 0
        let widths = (0..<count)
            .map { column in
                self.rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
            }
        return self.rows
            .map { row in
                var line = ""
                for (cell, width) in zip(row, widths) {
                    line += cell + String(repeating: " ", count: width - cell.count + 2)
                }
                while line.last == " " {
                    line.removeLast()
                }
                return line
            }
            .joined(separator: "\n")
    }
}
