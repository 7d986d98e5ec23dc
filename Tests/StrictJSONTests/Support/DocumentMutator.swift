import Foundation

/// Damages documents, mostly a little.
struct DocumentMutator {
    private static let insertions: [[UInt8]] = [
        Array(",".utf8), Array(":".utf8), Array("[".utf8), Array("]".utf8), Array("{".utf8), Array("}".utf8),
        Array("\"".utf8), Array("\\".utf8), Array("0".utf8), Array("-".utf8), Array(".".utf8), Array("e".utf8),
        Array("+".utf8), Array("1".utf8), Array("true".utf8), Array("null".utf8), Array(#"\uD800"#.utf8),
        Array(#"\u00"#.utf8), Array("/".utf8), Array("//".utf8), Array("'".utf8), Array("NaN".utf8), [0x00], [0x1F],
        [0x0B], [0x80], [0xC0], [0xC3], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xFF], [0xA0],
        [0xEF, 0xBB, 0xBF], [0xC3, 0xA9],
    ]
    private static let encodings: [String.Encoding] = [
        .utf16LittleEndian, .utf16BigEndian, .utf32LittleEndian, .utf32BigEndian, .utf16, .utf32,
    ]

    private var random: SplitMix64

    /// Creates a mutator.
    ///
    /// - Parameter seed: Decides all damage.
    init(seed: UInt64) {
        self.random = SplitMix64(seed: seed)
    }

    /// Damages a document.
    ///
    /// - Parameter document: A text.
    /// - Returns: Another text, as a rule.
    mutating func mutated(_ document: [UInt8]) -> [UInt8] {
        guard self.random.below(100) > 0 else { return self.transcoded(document) }
        var mutated = document
        for _ in 0...self.random.below(2) {
            self.damage(&mutated)
        }
        return mutated
    }

    private mutating func damage(_ document: inout [UInt8]) {
        guard !document.isEmpty else { return }
        let position = self.random.below(document.count)
        switch self.random.below(9) {
        case 0:
            document[position] = UInt8(truncatingIfNeeded: self.random.below(256))
        case 1:
            document[position] = self.random.pick(Self.insertions)[0]
        case 2:
            document.remove(at: position)
        case 3:
            document.removeLast(document.count - position)
        case 4:
            document.swapAt(position, self.random.below(document.count))
        case 5:
            let end = min(document.count, position + 1 + self.random.below(12))
            document.insert(contentsOf: document[position..<end], at: self.random.below(document.count))
        case 6:
            // Trailing commas hardly ever come about by chance.
            let closing = document.indices.filter { document[$0] == 0x5D || document[$0] == 0x7D }
            guard !closing.isEmpty else { return }
            document.insert(UInt8(ascii: ","), at: self.random.pick(closing))
        default:
            document.insert(contentsOf: self.random.pick(Self.insertions), at: position)
        }
    }

    private mutating func transcoded(_ document: [UInt8]) -> [UInt8] {
        guard self.random.below(3) > 0 else { return [0xEF, 0xBB, 0xBF] + document }
        let text = String(decoding: document, as: UTF8.self)
        return text.data(using: self.random.pick(Self.encodings)).map { Array($0) } ?? document
    }
}
