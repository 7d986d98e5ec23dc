import FCMModel
import Testing

@Suite("LegacyErrorName")
struct LegacyErrorNameTests {
    /// A name and the REST code with the same meaning.
    private static let codes: [(String, OutcomeCode)] = [
        ("MissingRegistration", .invalidTarget),
        ("InvalidRegistration", .invalidToken),
        ("NotRegistered", .unregistered),
        ("InvalidPackageName", .packageMismatch),
        ("MismatchSenderId", .senderMismatch),
        ("MessageTooBig", .messageTooBig),
        ("InvalidDataKey", .invalidDataKey),
        ("InvalidTtl", .invalidField),
        ("InvalidParameters", .invalidField),
        ("MissingCollapseKey", .invalidField),
        ("Unavailable", .upstreamUnavailable),
        ("QuotaExceeded", .upstreamUnavailable),
        ("InternalServerError", .upstreamInternal),
        ("DeviceMessageRateExceeded", .deviceRateExceeded),
        ("DeviceQuotaExceeded", .deviceRateExceeded),
        ("TopicsMessageRateExceeded", .topicRateExceeded),
        ("InvalidApnsCredential", .upstreamCredentials),
    ]

    @Test("Every name has its code, in every spelling seen on the wire", arguments: Self.codes)
    func spellings(name: String, code: OutcomeCode) throws {
        // TopicsMessageRateExceeded, TOPICS_MESSAGE_RATE_EXCEEDED, topics message rate exceeded: ...
        let words = name.reduce(into: [String]()) { words, letter in
            if letter.isUppercase { words.append("") }
            words[words.count - 1].append(letter)
        }
        let spellings = [
            name, name.uppercased(), name.lowercased(),
            words.joined(separator: "_"), words.joined(separator: "_").uppercased(),
            words.joined(separator: " "), words.joined(separator: " ").lowercased(),
            " \(name)\t", "_\(name)_", "\(name): with an explanation", "\(name):", "\(name) : a:b",
            words.joined(separator: "_").uppercased() + ": NotRegistered", "\(name)\r\n",
        ]
        for spelling in spellings {
            let parsed = try #require(LegacyErrorName(wireText: spelling), "\(spelling)")
            #expect(parsed.rawValue == name)
            #expect(parsed.outcomeCode == code)
        }
    }

    @Test("The table names every name, and only once")
    func completeness() {
        #expect(Self.codes.map(\.0).sorted() == LegacyErrorName.allCases.map(\.rawValue).sorted())
    }

    @Test(
        "Anything else is no name",
        arguments: [
            "", ":", " ", "_", ": NotRegistered", "DeprecatedApi", "SomethingNew", "NotRegisteredX", "XNotRegistered",
            "Not-Registered", "Not.Registered", "NotRegistered;", "Error=NotRegistered", "Registered", "Not",
            "N\u{F6}tRegistered", "NotRegistered\u{301}", "NotRegistered\u{0}",
        ]
    )
    func unknown(text: String) {
        #expect(LegacyErrorName(wireText: text) == nil)
    }
}
