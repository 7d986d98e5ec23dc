/// A topic expression such as `'dogs' in topics && 'cats' in topics`, validated and in canonical form.
///
/// FCM evaluates parentheses first, and then operators from left to right without precedence (C-LTR). The canonical
/// form therefore preserves the grouping exactly as written.
package struct TopicCondition: Sendable, Hashable {
    /// The expressions that an upstream or a facade allows (C-LIMIT, C-NOT).
    package enum Profile: Sendable {
        /// At most two operators and no negation.
        case legacy
        /// At most five topics. A repeated topic counts each time.
        case v1
    }

    /// The reason that an expression is refused.
    package enum ParseError: Error, Sendable, Hashable {
        /// The text violates the grammar at this byte.
        case syntax(offset: Int)
        /// The topic name that starts at this byte has invalid characters or is too long.
        case topicName(offset: Int)
        /// More than 32 parentheses are open at this byte (C-DEPTH).
        case tooDeep(offset: Int)
    }

    package static let maxDepth = 32

    /// The expression with single quotes, lower-case keywords, one blank around operators, and the parentheses as
    /// written (C-CANON).
    package let canonical: String
    package let topics: [TopicName]

    package init(parsing text: String) throws(ParseError) {
        var parser = Parser(text)
        try parser.parse()
        self.canonical = parser.canonical
        self.topics = parser.topics
    }

    /// The number of `&&` and `||`. Each is between two topics.
    package var operatorCount: Int { self.topics.count - 1 }
    package var containsNegation: Bool { self.canonical.utf8.contains(UInt8(ascii: "!")) }

    package func fits(_ profile: Profile) -> Bool {
        switch profile {
        case .legacy: self.operatorCount <= 2 && !self.containsNegation
        case .v1: self.topics.count <= 5
        }
    }
}

extension TopicCondition {
    /// Reads the condition grammar of the legacy protocol page, extended by v1's negation.
    ///
    /// ```
    /// expression = term *( ("&&" / "||") term )
    /// term       = "(" expression ")" / "!" "(" expression ")" / predicate
    /// predicate  = quote name quote 1*blank "in" 1*blank "topics"
    /// ```
    ///
    /// Recursion is at most ``TopicCondition/maxDepth`` parentheses deep.
    private struct Parser {
        /// No term may begin beyond this many bytes, which bounds the work for a hostile text. Five predicates with the
        /// longest names need fewer than 5,000 bytes.
        private static let maxBytes = 25_000

        private let bytes: [UInt8]
        private var position = 0
        private var depth = 0

        private(set) var canonical = ""
        private(set) var topics: [TopicName] = []

        init(_ text: String) {
            self.bytes = Array(text.utf8)
        }

        mutating func parse() throws(TopicCondition.ParseError) {
            try self.expression()
            guard self.position == self.bytes.count else { throw .syntax(offset: self.position) }
        }

        private mutating func expression() throws(TopicCondition.ParseError) {
            try self.term()
            while let symbol = self.operatorSymbol() {
                self.canonical += symbol
                try self.term()
            }
        }

        private mutating func term() throws(TopicCondition.ParseError) {
            guard self.position <= Self.maxBytes else { throw .syntax(offset: self.position) }
            self.skipBlanks()
            switch self.peek() {
            case UInt8(ascii: "!"):
                self.position += 1
                self.canonical += "!"
                self.skipBlanks()
                guard self.peek() == UInt8(ascii: "(") else { throw .syntax(offset: self.position) }
                try self.parenthesised()
            case UInt8(ascii: "("):
                try self.parenthesised()
            case UInt8(ascii: "'"), UInt8(ascii: "\""):
                try self.predicate()
            default:
                throw .syntax(offset: self.position)
            }
            self.skipBlanks()
        }

        private mutating func parenthesised() throws(TopicCondition.ParseError) {
            self.depth += 1
            guard self.depth <= TopicCondition.maxDepth else { throw .tooDeep(offset: self.position) }
            self.position += 1
            self.canonical += "("
            try self.expression()
            guard self.peek() == UInt8(ascii: ")") else { throw .syntax(offset: self.position) }
            self.position += 1
            self.canonical += ")"
            self.depth -= 1
        }

        private mutating func predicate() throws(TopicCondition.ParseError) {
            let quote = self.bytes[self.position]
            let start = self.position + 1
            guard let end = self.bytes[start...].firstIndex(of: quote) else { throw .syntax(offset: self.position) }
            guard let name = TopicName(String(decoding: self.bytes[start..<end], as: UTF8.self)) else {
                throw .topicName(offset: start)
            }
            self.position = end + 1
            try self.blankAndKeyword("in")
            try self.blankAndKeyword("topics")
            self.topics.append(name)
            self.canonical += "'\(name)' in topics"
        }

        /// Reads at least one blank, and a keyword in any letter case (C-CASE).
        private mutating func blankAndKeyword(_ keyword: String) throws(TopicCondition.ParseError) {
            let before = self.position
            self.skipBlanks()
            guard self.position > before else { throw .syntax(offset: self.position) }
            for expected in keyword.utf8 {
                guard let byte = self.peek(), byte | 0x20 == expected else { throw .syntax(offset: self.position) }
                self.position += 1
            }
        }

        private mutating func operatorSymbol() -> String? {
            guard let first = self.peek(), self.position + 1 < self.bytes.count,
                first == UInt8(ascii: "&") || first == UInt8(ascii: "|"), self.bytes[self.position + 1] == first
            else { return nil }
            self.position += 2
            return first == UInt8(ascii: "&") ? " && " : " || "
        }

        private func peek() -> UInt8? {
            self.position < self.bytes.count ? self.bytes[self.position] : nil
        }

        private mutating func skipBlanks() {
            while let byte = self.peek(), byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A {
                self.position += 1
            }
        }
    }
}
