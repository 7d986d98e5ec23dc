/// A chunked body read in one go from all its bytes, to compare with.
enum NaiveChunks {
    /// What comes of it; nil where the bytes end before the body does.
    ///
    /// - Returns: the data and how many bytes were read, or that the body is malformed.
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

    /// What comes of a body.
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
