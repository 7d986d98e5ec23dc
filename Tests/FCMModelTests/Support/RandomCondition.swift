/// A topic expression written carelessly, beside what it must be read as.
struct RandomCondition {
    private(set) var written = ""
    private(set) var canonical = ""
    private(set) var topics: [String] = []
    private(set) var operators = 0

    /// Appends an expression of one to three terms.
    mutating func drawExpression(depth: Int, using random: inout SplitMix64) {
        self.drawTerm(depth: depth, using: &random)
        for _ in 0..<random.below(3) {
            let symbol = random.pick(["&&", "||"])
            self.operators += 1
            self.written += symbol
            self.canonical += " \(symbol) "
            self.drawTerm(depth: depth, using: &random)
        }
    }

    private mutating func drawTerm(depth: Int, using random: inout SplitMix64) {
        self.written += Self.blanks(0, using: &random)
        let form = depth < 4 ? random.below(4) : 3
        if form < 2 {
            if form == 0 {
                self.written += "!" + Self.blanks(0, using: &random)
                self.canonical += "!"
            }
            self.written += "("
            self.canonical += "("
            self.drawExpression(depth: depth + 1, using: &random)
            self.written += ")"
            self.canonical += ")"
        } else {
            let name = RandomText.topic(1...6, using: &random)
            let quote = random.pick(["'", "\""])
            let keywords = ["in", "topics"].map { Self.anyCase($0, using: &random) }
            let blanks = [Self.blanks(1, using: &random), Self.blanks(1, using: &random)]
            self.written += quote + name + quote + blanks[0] + keywords[0] + blanks[1] + keywords[1]
            self.canonical += "'\(name)' in topics"
            self.topics.append(name)
        }
        self.written += Self.blanks(0, using: &random)
    }

    private static func blanks(_ least: Int, using random: inout SplitMix64) -> String {
        (0..<(least + random.below(3))).map { _ in random.pick([" ", "\t", "\r", "\n"]) }.joined()
    }

    private static func anyCase(_ word: String, using random: inout SplitMix64) -> String {
        word.map { random.below(2) == 0 ? $0.uppercased() : String($0) }.joined()
    }
}
