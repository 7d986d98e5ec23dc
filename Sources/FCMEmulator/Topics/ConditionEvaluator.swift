/// A condition over topics: parsed, checked and ready to be evaluated.
///
/// Parentheses come first; the rest goes strictly from left to right, `&&` and `||` being equals (C-LTR). The parser is
/// in `ConditionEvaluator+Parser.swift`.
struct ConditionEvaluator: Sendable, Equatable {
    /// Says why a text is no condition.
    struct Refusal: Error, Equatable {
        let reason: String
    }

    /// The two protocols' limits (C-LIMIT, C-NOT).
    enum Profile {
        /// Two operators, no negation.
        case legacy
        /// Five topics, negation of what stands in parentheses.
        case v1
    }

    indirect enum Node: Sendable, Equatable {
        case topic(String)
        case both(Node, Node)
        case either(Node, Node)
        case not(Node)
    }

    /// The condition with single quotes, lower-case keywords and regular blanks (C-CANON).
    let canonical: String

    /// The topics in the order written, repeats kept.
    let topics: [String]

    private let root: Node

    /// Parses a condition.
    ///
    /// - Throws: the rule of C-GRAMMAR, C-LIMIT, C-NOT, C-NAME or C-DEPTH that it breaks.
    init(_ text: String, profile: Profile = .legacy) throws(Refusal) {
        var parser = Parser(text, profile: profile)
        self.root = try parser.condition()
        self.canonical = parser.canonical
        self.topics = parser.topics
    }

    /// Whether the condition holds for a device, of which the closure says to which topics it is subscribed.
    func matches(_ isSubscribed: (String) -> Bool) -> Bool {
        Self.evaluate(self.root, isSubscribed)
    }

    /// Whether it can hold only for a device that follows one of its topics.
    var needsSubscription: Bool { !self.matches { _ in false } }

    private static func evaluate(_ node: Node, _ isSubscribed: (String) -> Bool) -> Bool {
        switch node {
        case .topic(let name):
            return isSubscribed(name)
        case .both(let left, let right):
            return Self.evaluate(left, isSubscribed) && Self.evaluate(right, isSubscribed)
        case .either(let left, let right):
            return Self.evaluate(left, isSubscribed) || Self.evaluate(right, isSubscribed)
        case .not(let node):
            return !Self.evaluate(node, isSubscribed)
        }
    }
}
