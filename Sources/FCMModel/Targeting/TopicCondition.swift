/// A topic expression such as `'dogs' in topics && 'cats' in topics`, checked and brought into canonical form.
///
/// FCM evaluates parentheses first and then from left to right without precedence (C-LTR), so the written grouping is
/// kept exactly.
package struct TopicCondition: Sendable, Hashable {
    /// What an upstream or a facade allows an expression to hold (C-LIMIT, C-NOT).
    package enum Profile: Sendable {
        /// At most two operators and no negation.
        case legacy
        /// At most five topics, repeated ones counted each time.
        case v1
    }

    /// Why an expression is refused.
    package enum ParseError: Error, Sendable, Hashable {
        /// The text departs from the grammar at this byte.
        case syntax(offset: Int)
        /// A topic name holds other characters than topics may, or is too long; the byte is where it starts.
        case topicName(offset: Int)
        /// More than 32 parentheses are open at this byte (C-DEPTH).
        case tooDeep(offset: Int)
    }

    /// The deepest nesting of parentheses.
    package static let maxDepth = 32

    /// Single quotes, lower-case keywords, one blank around operators, parentheses as written (C-CANON).
    package let canonical: String
    /// The topics in order of appearance, repeats kept.
    package let topics: [TopicName]
    /// How many `&&` and `||` the expression holds.
    package let operatorCount: Int
    /// Whether `!` appears.
    package let containsNegation: Bool

    /// Parses an expression of either profile.
    ///
    /// - Throws: the first departure from the grammar.
    package init(parsing text: String) throws(ParseError) {
        var parser = TopicConditionParser(text)
        try parser.parse()
        self.canonical = parser.canonical
        self.topics = parser.topics
        self.operatorCount = parser.operatorCount
        self.containsNegation = parser.containsNegation
    }

    /// Whether the expression is allowed under a profile.
    package func fits(_ profile: Profile) -> Bool {
        switch profile {
        case .legacy: self.operatorCount <= 2 && !self.containsNegation
        case .v1: self.topics.count <= 5
        }
    }
}
