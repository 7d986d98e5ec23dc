import FCMModel
import Testing

@Suite("TopicCondition")
struct TopicConditionTests {
    @Test("Grammar, limits and canonical form are those of the vectors", arguments: try ConditionVector.all())
    func vectors(vector: ConditionVector) throws {
        let condition = try? TopicCondition(parsing: vector.condition)
        #expect((condition?.fits(.legacy) ?? false) == vector.isLegacyValid)
        #expect((condition?.fits(.v1) ?? false) == vector.isV1Valid)
        guard let reading = vector.reading else { return }
        let parsed = try #require(condition)
        #expect(parsed.canonical == reading.canonical)
        #expect(parsed.operatorCount == reading.operators)
        #expect(parsed.topics.map(\.text) == reading.topics)
        #expect(parsed.containsNegation == reading.canonical.contains("!"))
        #expect(try TopicCondition(parsing: reading.canonical) == parsed)
        for evaluation in vector.evaluations {
            #expect(evaluation.subscribed.allSatisfy { TopicName($0) != nil })
        }
    }

    @Test("Nothing of the vectors is left out")
    func completeness() throws {
        let vectors = try ConditionVector.all()
        #expect(vectors.count == 42)
        #expect(vectors.filter { $0.reading != nil }.count == 19)
        #expect(vectors.filter { !$0.evaluations.isEmpty }.count == 8)
    }

    @Test("Thirty-two parentheses may be open at once", arguments: ["(", "!("])
    func depth(opening: String) throws {
        let deepest = String(repeating: opening, count: 32) + "'a' in topics" + String(repeating: ")", count: 32)
        #expect(try TopicCondition(parsing: deepest).canonical == deepest)
        let tooDeep = TopicCondition.ParseError.tooDeep(offset: 33 * opening.utf8.count - 1)
        #expect(throws: tooDeep) { try TopicCondition(parsing: opening + deepest + ")") }
        // Far too deep must cost neither the stack nor time.
        #expect(throws: tooDeep) { try TopicCondition(parsing: String(repeating: opening, count: 200_000)) }
    }

    @Test("Parentheses that were closed no longer count as open")
    func siblings() throws {
        let text = Array(repeating: "('a' in topics)", count: 40).joined(separator: " && ")
        let condition = try TopicCondition(parsing: text)
        #expect(condition.operatorCount == 39)
        #expect(condition.topics.count == 40)
        #expect(condition.canonical == text)
    }

    @Test(
        "A refusal names the place",
        arguments: [
            ("", .syntax(offset: 0)), ("   ", .syntax(offset: 3)), ("topics", .syntax(offset: 0)),
            ("'a", .syntax(offset: 0)), ("'a\" in topics", .syntax(offset: 0)), ("'a'in topics", .syntax(offset: 3)),
            ("'a' in", .syntax(offset: 6)), ("'a' intopics", .syntax(offset: 6)), ("'a' on topics", .syntax(offset: 4)),
            ("'a' in topic", .syntax(offset: 12)), ("'a' in topicsx", .syntax(offset: 13)),
            ("'a' in topics &", .syntax(offset: 14)), ("'a' in topics & 'b' in topics", .syntax(offset: 14)),
            ("'a' in topics &&", .syntax(offset: 16)), ("'a' in topics 'b' in topics", .syntax(offset: 14)),
            ("('a' in topics", .syntax(offset: 14)), ("'a' in topics)", .syntax(offset: 13)),
            ("()", .syntax(offset: 1)), ("!'a' in topics", .syntax(offset: 1)),
            ("!!('a' in topics)", .syntax(offset: 1)),
            ("'' in topics", .topicName(offset: 1)), ("'a b' in topics", .topicName(offset: 1)),
            ("'/topics/a' in topics", .topicName(offset: 1)), ("(\"\u{E9}\" in topics)", .topicName(offset: 2)),
            ("'a' in topics\u{A0}&& 'b' in topics", .syntax(offset: 13)),
        ] as [(String, TopicCondition.ParseError)]
    )
    func refusals(text: String, expected: TopicCondition.ParseError) {
        #expect(throws: expected) { try TopicCondition(parsing: text) }
    }

    @Test("A topic name in an expression has the bounds of any other")
    func nameBounds() throws {
        let longest = String(repeating: "t", count: TopicName.maxLength)
        #expect(try TopicCondition(parsing: "'\(longest)' in topics").topics.map(\.text) == [longest])
        #expect(throws: TopicCondition.ParseError.topicName(offset: 1)) {
            try TopicCondition(parsing: "'\(longest)t' in topics")
        }
    }

    @Test("Every spelling of an expression has one canonical form, which is its own", arguments: SplitMix64.seeds)
    func canonicalForm(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            var expression = RandomCondition()
            expression.drawExpression(depth: 0, using: &random)
            let parsed = try TopicCondition(parsing: expression.written)
            #expect(parsed.canonical == expression.canonical, "\(expression.written)")
            #expect(parsed.topics.map(\.text) == expression.topics)
            #expect(parsed.operatorCount == expression.operators)
            #expect(parsed.containsNegation == expression.canonical.contains("!"))
            #expect(try TopicCondition(parsing: parsed.canonical) == parsed)
            #expect(parsed.fits(.v1) == (expression.topics.count <= 5))
            #expect(parsed.fits(.legacy) == (expression.operators <= 2 && !expression.canonical.contains("!")))
        }
    }

    @Test("Garbage is refused or understood, and what is understood is canonical", arguments: SplitMix64.seeds)
    func garbage(seed: UInt64) throws {
        let pieces = [
            "'", "\"", "a", "'a'", " ", "\t", "\r\n", "in", "IN", "topics", "Topics", "'a' in topics", "&&", "||", "&",
            "|", "(", ")", "!", "!(", "\u{E9}", "\u{1F600}", "\u{301}", "\u{0}", "%", "/topics/",
        ]
        var random = SplitMix64(seed: seed)
        var understood = 0
        for _ in 0..<500 {
            // A valid expression with pieces thrown in, or nothing but pieces.
            var parts = random.below(2) == 0 ? ["('a' in topics", " || ", "!('b' in topics)", ")"] : []
            for _ in 0..<random.below(6) { parts.insert(random.pick(pieces), at: random.below(parts.count + 1)) }
            let text = parts.joined()
            guard let condition = try? TopicCondition(parsing: text) else { continue }
            understood += 1
            #expect(try TopicCondition(parsing: condition.canonical) == condition, "\(text)")
            #expect(condition.topics.count == condition.operatorCount + 1)
        }
        #expect(understood > 0)
    }
}
