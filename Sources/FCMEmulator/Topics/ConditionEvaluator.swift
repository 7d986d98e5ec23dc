/// A condition over topics: parsed, checked, and ready to be evaluated.
///
/// Parentheses come first. The rest is evaluated strictly from left to right; `&&` and `||` have the same precedence
/// (C-LTR). Example: `a || b && c` means `(a || b) && c`.
struct ConditionEvaluator: Sendable, Equatable {
    struct Refusal: Error, Equatable {
        let reason: String
    }

    /// The two protocols' limits (C-LIMIT, C-NOT).
    enum Profile {
        case legacy
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
    let topics: [String]
    private let root: Node

    init(_ text: String, profile: Profile = .legacy) throws(Refusal) {
        var parser = Parser(text, profile: profile)
        self.root = try parser.condition()
        self.canonical = parser.canonical
        self.topics = parser.topics
    }

    func matches(_ isSubscribed: (String) -> Bool) -> Bool {
        Self.evaluate(self.root, isSubscribed)
    }

    /// True if it can hold only for devices that follow one of its topics.
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

extension ConditionEvaluator {
    struct Parser {
        private static let maxOperators = 2
        private static let maxTopics = 5
        private static let maxDepth = 32
        private let profile: Profile
        private let bytes: [UInt8]
        private var index = 0
        private var operators = 0
        private(set) var canonical = ""
        private(set) var topics: [String] = []

        init(_ text: String, profile: Profile) {
            self.profile = profile
            self.bytes = Array(text.utf8)
        }

        mutating func condition() throws(Refusal) -> Node {
            let node = try self.expression(depth: 0)
            guard self.index == self.bytes.count else { throw self.unexpected() }
            return node
        }

        private mutating func expression(depth: Int) throws(Refusal) -> Node {
            var node = try self.term(depth: depth)
            while true {
                self.skipBlanks()
                if self.take("&&") {
                    try self.countOperator("&&")
                    node = .both(node, try self.term(depth: depth))
                } else if self.take("||") {
                    try self.countOperator("||")
                    node = .either(node, try self.term(depth: depth))
                } else {
                    return node
                }
            }
        }

        private mutating func term(depth: Int) throws(Refusal) -> Node {
            self.skipBlanks()
            if self.take("!") {
                guard self.profile == .v1 else { throw Refusal(reason: "the legacy protocol has no \"!\"") }
                self.canonical += "!"
                self.skipBlanks()
                guard self.take("(") else { throw self.unexpected() }
                return .not(try self.group(depth: depth))
            }
            guard self.take("(") else { return try self.predicate() }
            return try self.group(depth: depth)
        }

        private mutating func group(depth: Int) throws(Refusal) -> Node {
            guard depth < Self.maxDepth else {
                throw Refusal(reason: "more than \(Self.maxDepth) nested parentheses")
            }
            self.canonical += "("
            let node = try self.expression(depth: depth + 1)
            guard self.take(")") else { throw self.unexpected() }
            self.canonical += ")"
            return node
        }

        private mutating func predicate() throws(Refusal) -> Node {
            let name = try self.name()
            guard self.skipBlanks() > 0, self.takeWord("in"), self.skipBlanks() > 0, self.takeWord("topics") else {
                throw self.unexpected()
            }
            self.topics.append(name)
            guard self.profile == .legacy || self.topics.count <= Self.maxTopics else {
                throw Refusal(reason: "more than \(Self.maxTopics) topics")
            }
            self.canonical += "'\(name)' in topics"
            return .topic(name)
        }

        private mutating func name() throws(Refusal) -> String {
            guard let quote = self.peek(), quote == UInt8(ascii: "'") || quote == UInt8(ascii: "\"") else {
                throw self.unexpected()
            }
            let rest = self.bytes[(self.index + 1)...]
            guard let end = rest.firstIndex(of: quote) else {
                throw Refusal(reason: "the quote at byte \(self.index) does not end")
            }
            let name = rest[..<end]
            guard TopicName.isValid(name) else {
                throw Refusal(reason: "no topic name between the quotes at byte \(self.index)")
            }
            self.index = end + 1
            return String(decoding: name, as: UTF8.self)
        }

        private mutating func countOperator(_ symbol: String) throws(Refusal) {
            self.operators += 1
            guard self.profile == .v1 || self.operators <= Self.maxOperators else {
                throw Refusal(reason: "more than \(Self.maxOperators) operators")
            }
            self.canonical += " \(symbol) "
        }

        @discardableResult
        private mutating func skipBlanks() -> Int {
            let start = self.index
            while let byte = self.peek(), byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
                self.index += 1
            }
            return self.index - start
        }

        private mutating func take(_ symbol: StaticString) -> Bool {
            self.takeBytes(Array(symbol.description.utf8)) { $0 }
        }

        /// Reads a keyword in any case (C-CASE).
        private mutating func takeWord(_ word: StaticString) -> Bool {
            self.takeBytes(Array(word.description.utf8)) { $0 | 0x20 }
        }

        private mutating func takeBytes(_ expected: [UInt8], folding fold: (UInt8) -> UInt8) -> Bool {
            guard self.bytes[self.index...].prefix(expected.count).map(fold) == expected else { return false }
            self.index += expected.count
            return true
        }

        private func peek() -> UInt8? {
            self.index < self.bytes.count ? self.bytes[self.index] : nil
        }

        private func unexpected() -> Refusal {
            guard self.peek() != nil else { return Refusal(reason: "the condition ends too early") }
            return Refusal(reason: "unexpected character at byte \(self.index)")
        }
    }
}

/// The rule for topic names: 1 to 900 characters of `A-Z a-z 0-9 - _ . ~ %` (L-TOPIC, C-NAME).
enum TopicName {
    /// The prefix of a topic's name in `to`.
    static let prefix = "/topics/"
    private static let maxLength = 900

    /// True if the bytes are a topic's name, without prefix.
    static func isValid(_ bytes: some Collection<UInt8>) -> Bool {
        (1...Self.maxLength).contains(bytes.count) && bytes.allSatisfy(Self.isNameByte)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            return true
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "~"), UInt8(ascii: "%"):
            return true
        default:
            return false
        }
    }
}
