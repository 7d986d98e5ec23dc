import FCMModel
import Testing

@Suite("Target")
struct TargetTests {
    /// Each kind with its name, how many outcomes it has and how large its payload may be.
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
        #expect(Set(all.map { $0.0.kind }) == Set(TargetKind.allCases))
    }

    @Test("Topics and conditions are answered once, all else per recipient")
    func shapes() throws {
        for (target, kind, recipients, _) in try Self.all() {
            let isSingle = kind == "topic" || kind == "condition"
            #expect(LegacyReply.Shape(target: target) == (isSingle ? .single : .results(count: recipients)))
        }
    }
}
