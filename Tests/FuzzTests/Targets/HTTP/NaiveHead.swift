/// A head taken apart at its line ends and colons, without any doubt about what it may hold.
struct NaiveHead {
    /// The first line.
    let startLine: [UInt8]
    /// Names as written, and values without the blanks around them.
    let fields: [(name: String, value: String)]

    /// Takes a head that ends with its empty line apart; nil where a line has no colon.
    init?(_ head: [UInt8]) {
        var lines = Self.lines(head)
        lines = Array(lines.drop(while: \.isEmpty))
        guard let startLine = lines.first, lines.count >= 3, lines.suffix(2).allSatisfy(\.isEmpty) else { return nil }
        self.startLine = startLine
        var fields: [(name: String, value: String)] = []
        for line in lines.dropFirst().dropLast(2) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            var value = line[(colon + 1)...].drop { $0 == 0x20 || $0 == 0x09 }
            while value.last == 0x20 || value.last == 0x09 { value.removeLast() }
            fields.append((String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self)))
        }
        self.fields = fields
    }

    /// The values of a field.
    func values(of name: String) -> [String] {
        self.fields.filter { $0.name.lowercased() == name }.map(\.value)
    }

    /// Whether nothing but text stands in the lines: no control characters, no line ends of other kinds.
    var isPlainText: Bool {
        let texts = [self.startLine] + self.fields.map { Array($0.name.utf8) + Array($0.value.utf8) }
        return texts.joined().allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
    }

    private static func lines(_ bytes: [UInt8]) -> [[UInt8]] {
        var lines: [[UInt8]] = [[]]
        var index = 0
        while index < bytes.count {
            if bytes[index] == 0x0D, index + 1 < bytes.count, bytes[index + 1] == 0x0A {
                lines.append([])
                index += 2
            } else {
                lines[lines.count - 1].append(bytes[index])
                index += 1
            }
        }
        return lines
    }
}
