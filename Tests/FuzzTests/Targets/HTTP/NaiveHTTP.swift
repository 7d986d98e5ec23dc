/// A head split at its line ends and colons, without validation.
struct NaiveHead {
    /// The first line.
    let startLine: [UInt8]
    /// Names as written, and values without surrounding blanks.
    let fields: [(name: String, value: String)]

    /// Splits a head that ends with its empty line; nil if a line has no colon.
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

    func values(of name: String) -> [String] {
        self.fields.filter { $0.name.lowercased() == name }.map(\.value)
    }

    /// Throws a finding if names or values differ from those of this head, apart from white space around a value.
    func requireFields(_ names: [String], _ values: [String]) throws(FuzzFinding) {
        try FuzzFinding.require(self.isPlainText, "accepted with control characters")
        try FuzzFinding.requireEqual(names, self.fields.map(\.name), "other names")
        let own = self.fields.map { RequestProperties.trimmed($0.value) }
        try FuzzFinding.requireEqual(values.map { RequestProperties.trimmed($0) }, own, "other values")
    }

    /// True if the lines contain no control characters and no other kinds of line end.
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

/// Reads a chunked body in one go from all its bytes, for comparison.
enum NaiveChunks {
    /// Returns the data and the number of bytes read, or that the body is incomplete or malformed.
    static func read(_ bytes: [UInt8]) -> Reading {
        var data: [UInt8] = []
        var position = 0
        while true {
            guard let end = Self.lineEnd(bytes, position) else { return .incomplete }
            let size = bytes[position..<end].prefix { $0 != UInt8(ascii: ";") }
            let text = String(decoding: size, as: UTF8.self)
            guard !text.isEmpty, text.allSatisfy({ $0.isASCII && $0.isHexDigit }), let count = Int(text, radix: 16),
                Self.isText(bytes[position..<end])
            else { return .malformed }
            position = end + 2
            if count == 0 { break }
            guard bytes.count - position >= count else { return .incomplete }
            data += bytes[position..<(position + count)]
            position += count
            guard bytes.count - position >= 2 else { return .incomplete }
            guard bytes[position] == 0x0D, bytes[position + 1] == 0x0A else { return .malformed }
            position += 2
        }
        while let end = Self.lineEnd(bytes, position) {
            let line = bytes[position..<end]
            position = end + 2
            if line.isEmpty { return .complete(data, readBytes: position) }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy({ Self.isToken($0) }), Self.isText(line)
            else { return .malformed }
        }
        return .incomplete
    }

    /// The result of reading a body.
    enum Reading: Equatable {
        case incomplete
        case malformed
        case complete([UInt8], readBytes: Int)
    }

    private static func lineEnd(_ bytes: [UInt8], _ start: Int) -> Int? {
        guard start < bytes.count else { return nil }
        return bytes.indices[start...].first { $0 + 1 < bytes.count && bytes[$0] == 0x0D && bytes[$0 + 1] == 0x0A }
    }

    private static func isText(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        let scalar = Unicode.Scalar(byte)
        return byte > 0x20 && byte < 0x7F && !"\"(),/:;<=>?@[\\]{}".unicodeScalars.contains(scalar)
    }
}
