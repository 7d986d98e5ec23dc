import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("LegacyRequestEncoder")
struct LegacyRequestEncoderTests {
    /// One target and its form on the wire.
    private static func targets() throws -> [(Target, String)] {
        [
            (.token("t"), #"{"to": "t"}"#),
            (.tokens(["a", "b", "a"]), #"{"registration_ids": ["a", "b", "a"]}"#),
            (.tokens(["a"]), #"{"registration_ids": ["a"]}"#),
            (.topic(try #require(TopicName("news%20.~"))), #"{"to": "/topics/news%20.~"}"#),
            (.notificationKey("APA91b"), #"{"to": "APA91b"}"#),
            (
                .condition(try TopicCondition(parsing: "( \"a\"  IN topics )||'b' in TOPICS")),
                #"{"condition": "('a' in topics) || 'b' in topics"}"#
            ),
        ]
    }

    @Test("Every target has its form, and an empty message adds no members")
    func targets() throws {
        for (target, expected) in try Self.targets() {
            try Self.expect(Message(), to: target, is: expected)
        }
    }

    @Test("Installation ids are refused", arguments: [.installation("f"), .installations(["f"])] as [Target])
    func installations(target: Target) {
        #expect(throws: LegacyRequestEncoder.Inexpressible.installationTarget) {
            try LegacyRequestEncoder.encode(Message(), to: target)
        }
    }

    @Test(
        "Conditions that only v1 allows are refused",
        arguments: [
            "!('a' in topics)",
            "'a' in topics && !('b' in topics)",
            "'a' in topics || 'b' in topics || 'c' in topics || 'd' in topics",
        ]
    )
    func conditions(text: String) throws {
        let condition = try TopicCondition(parsing: text)
        #expect(throws: LegacyRequestEncoder.Inexpressible.condition) {
            try LegacyRequestEncoder.encode(Message(), to: .condition(condition))
        }
    }

    @Test("An empty notification and absent values are omitted")
    func absence() throws {
        var message = Message()
        message.notification = Notification()
        try Self.expect(message, is: #"{"to": "t"}"#)
    }

    @Test("The body is byte for byte the canonical form")
    func canonicalBytes() throws {
        var message = Message()
        message.priority = .high
        message.timeToLive = 3_600
        message.collapseKey = "score"
        message.notification = Notification()
        message.notification?[.title] = "Portugal vs. Denmark"
        message.notification?.bodyLocArgs = ["2", "1"]
        message.data = [DataEntry(key: "score", value: "3x1\u{0}\u{1F}\n\"\\/\u{7F}\u{2028}\u{1F600}")]
        let expected = #"""
            {"to":"t","collapse_key":"score","priority":"high","time_to_live":3600,"notification":{"title":"Portugal vs. Denmark","body_loc_args":"[\"2\",\"1\"]"},"data":{"score":"3x1\u0000\u001f\n\"\\/
            """# + "\u{7F}\u{2028}\u{1F600}\"}}"
        let body = try LegacyRequestEncoder.encode(message, to: .token("t"))
        #expect(Array(body.readableBytesView) == Array(expected.utf8))
    }

    @Test("An encoded message decodes to the same target, message and size", arguments: SplitMix64.seeds)
    func roundTrip(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let target = try RandomMessage.target(using: &random)
            let message = RandomMessage.message(for: target, using: &random)
            let body = try LegacyRequestEncoder.encode(message, to: target)
            let request = try LegacyRequestDecoder.decode(body)
            #expect(request.target == target)
            #expect(request.message == message)
            #expect(request.message.bytesOfTexts == message.bytesOfTexts)
            #expect(request.payloadBytes == message.payloadBytes)
            #expect(request.localErrors.isEmpty)
            // Encoding it again gives the same bytes, since the form is canonical.
            #expect(try LegacyRequestEncoder.encode(request.message, to: request.target) == body)
        }
    }

    @Test("Every code point survives encoding and decoding as data")
    func everyCodePoint() throws {
        // The planes beyond the second are encoded alike, so a few code points of each suffice.
        let points = Array(0...0x2_FFFF) + (3...16).flatMap { [$0 << 16, $0 << 16 | 0x8000, $0 << 16 | 0xFFFF] }
        let scalars = points.compactMap { Unicode.Scalar(UInt32($0)) }
        for start in stride(from: 0, to: scalars.count, by: 1_000) {
            var text = String.UnicodeScalarView()
            text.append(contentsOf: scalars[start..<min(scalars.count, start + 1_000)])
            var message = Message()
            message.data = [DataEntry(key: "k", value: String(text))]
            let request = try LegacyRequestDecoder.decode(LegacyRequestEncoder.encode(message, to: .token("t")))
            #expect(request.message.bytesOfTexts == message.bytesOfTexts, "from \(start)")
        }
    }

    private static func expect(_ message: Message, to target: Target = .token("t"), is expected: String) throws {
        let body = try VectorJSON(parsing: LegacyRequestEncoder.encode(message, to: target))
        #expect(try VectorJSON(parsing: expected).mismatches(in: body) == [])
    }
}
