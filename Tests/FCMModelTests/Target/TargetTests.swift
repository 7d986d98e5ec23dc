import FCMModel
import Testing
import VectorTestKit

@Suite("Target")
struct TargetTests {
    /// Each kind with its name, its number of outcomes and its payload limit.
    private static func all() throws -> [(Target, kind: String, recipients: Int, bytes: Int)] {
        let topic = try #require(TopicName("news"))
        return [
            (.token("t"), "token", 1, 4_096),
            (.tokens(["t", "t", ""]), "tokens", 3, 4_096),
            (.installation("f"), "fid", 1, 4_096),
            (.installations(["f", "g"]), "fids", 2, 4_096),
            (.topic(topic), "topic", 1, 2_048),
            (.condition(try TopicCondition(parsing: "'a' in topics")), "condition", 1, 2_048),
            (.notificationKey("k"), "group", 1, 4_096),
        ]
    }

    @Test("Every kind has its name, its number of outcomes and its limit")
    func table() throws {
        let all = try Self.all()
        for (target, kind, recipients, bytes) in all {
            #expect(target.kind.rawValue == kind)
            #expect(target.recipientCount == recipients)
            #expect(target.maxPayloadBytes == bytes)
        }
        #expect(Set(all.map { $0.0.kind }) == Set(Target.Kind.allCases))
    }

    @Test("Topics and conditions have one result, other targets one per recipient")
    func shapes() throws {
        for (target, kind, recipients, _) in try Self.all() {
            let isSingle = kind == "topic" || kind == "condition"
            #expect(LegacyReplyWriter.Shape(target: target) == (isSingle ? .single : .results(count: recipients)))
        }
    }
}

@Suite("TopicName")
struct TopicNameTests {
    @Test("The allowed ASCII characters are letters, digits and -_.~%")
    func characters() {
        let allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~%"
        for byte in UInt8.min...0x7F {
            let character = String(Unicode.Scalar(byte))
            #expect((TopicName("a" + character + "z") != nil) == allowed.contains(character), "\(byte)")
        }
    }

    @Test(
        "Characters beyond ASCII are refused",
        arguments: ["\u{E9}", "e\u{301}", "\u{212A}", "\u{FF41}", "\u{1F600}", "a\u{200B}", "\u{430}"]
    )
    func beyondASCII(text: String) {
        #expect(TopicName(text) == nil)
    }

    @Test("Escapes are not decoded")
    func unchanged() {
        #expect(TopicName("a%20b%2F%")?.description == "a%20b%2F%")
    }

    @Test(
        "The prefix of a topic is compared byte by byte",
        arguments: [
            ("/topics/", true), ("/topics/a", true), ("/topics/\u{301}a", true), ("/topics", false),
            ("/Topics/a", false), ("topics/a", false), (" /topics/a", false), ("", false),
        ]
    )
    func prefix(to: String, isTopic: Bool) {
        #expect(TopicName.hasLegacyPrefix(to) == isTopic)
    }
}

@Suite("TopicCondition")
struct TopicConditionTests {
    @Test("Conditions have the validity and canonical form of the vectors", arguments: try ConditionVector.all())
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
    }

    @Test("The vectors have 19 readable conditions")
    func completeness() throws {
        #expect(try ConditionVector.all().filter { $0.reading != nil }.count == 19)
    }

    @Test("At most 32 parentheses may be open", arguments: ["(", "!("])
    func depth(opening: String) throws {
        let deepest = String(repeating: opening, count: 32) + "'a' in topics" + String(repeating: ")", count: 32)
        #expect(try TopicCondition(parsing: deepest).canonical == deepest)
        let tooDeep = TopicCondition.ParseError.tooDeep(offset: 33 * opening.utf8.count - 1)
        #expect(throws: tooDeep) { try TopicCondition(parsing: opening + deepest + ")") }
        // Extreme depth must neither overflow the stack nor take long.
        #expect(throws: tooDeep) { try TopicCondition(parsing: String(repeating: opening, count: 200_000)) }
    }

    @Test("Closed parentheses do not count as open")
    func siblings() throws {
        let text = Array(repeating: "('a' in topics)", count: 40).joined(separator: " && ")
        let condition = try TopicCondition(parsing: text)
        #expect(condition.operatorCount == 39)
        #expect(condition.topics.count == 40)
        #expect(condition.canonical == text)
    }

    @Test(
        "A refusal has the offset of the error",
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
}
