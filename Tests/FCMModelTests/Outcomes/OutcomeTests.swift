import FCMModel
import NIOCore
import Testing

@Suite("Rejection")
struct RejectionTests {
    @Test("A rejection keeps every legacy name, deprecated ones as current names", arguments: LegacyErrorName.allCases)
    func names(name: LegacyErrorName) {
        let rejection = Rejection(code: name.outcomeCode, legacyName: name)
        #expect(rejection.legacyErrorName == name.current)
        #expect(rejection.legacyErrorName.current == rejection.legacyErrorName)
    }

    @Test("A legacy name is stored only if the code's own name differs")
    func equality() {
        #expect(Rejection(code: .unregistered, legacyName: .notRegistered) == Rejection(code: .unregistered))
        #expect(Rejection(code: .invalidField, legacyName: .invalidTTL) != Rejection(code: .invalidField))
        #expect(Rejection(code: .upstreamCredentials).legacyErrorName == .internalServerError)
    }

    @Test("Only unregistered maps to NotRegistered, and retryable codes map to retryable names")
    func codes() {
        let deaths = OutcomeCode.allCases.filter { $0.legacyErrorName == .notRegistered }
        #expect(deaths == [.unregistered])
        let repeatable: Set<LegacyErrorName> = [
            .unavailable, .internalServerError, .deviceMessageRateExceeded, .topicsMessageRateExceeded,
        ]
        for code in OutcomeCode.allCases where code.isRetryable {
            #expect(repeatable.contains(code.legacyErrorName), "\(code)")
        }
    }
}

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

    @Test("The table has every name exactly once")
    func completeness() {
        #expect(Self.codes.map(\.0).sorted() == LegacyErrorName.allCases.map(\.rawValue).sorted())
    }

    @Test(
        "Any other text is not a name",
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

@Suite("SendResult")
struct SendResultTests {
    private static let accepted = V1Reading(answer: .accepted(messageID: "m"), upstreamCode: "200")

    private static func rejected(_ code: OutcomeCode, retryAfter: Int? = nil, _ word: String = "X") -> V1Reading {
        V1Reading(answer: .rejected(Rejection(code: code, retryAfter: retryAfter)), upstreamCode: word)
    }

    @Test("Outcomes keep the order of the calls, and the longest retryable delay applies to all")
    func order() {
        let result = SendResult(gathering: [
            Self.accepted, Self.rejected(.deviceRateExceeded, retryAfter: 9, "QUOTA_EXCEEDED"),
            Self.rejected(.unregistered, retryAfter: 99), Self.rejected(.upstreamUnavailable, retryAfter: 12),
        ])
        #expect(
            result.answer
                == .recipients([
                    .accepted(Acceptance(messageID: "m")),
                    .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 9, limitedBy: .fcm)),
                    .rejected(Rejection(code: .unregistered, retryAfter: 99)),
                    .rejected(Rejection(code: .upstreamUnavailable, retryAfter: 12)),
                ])
        )
        #expect(result.retryAfter == 12)
        #expect(result.upstreamCode == "QUOTA_EXCEEDED")
    }

    @Test(
        "A cause common to all calls is one refusal",
        arguments: [OutcomeCode.upstreamUnavailable, .upstreamCredentials, .upstreamInternal, .upstreamProtocol]
    )
    func commonCause(code: OutcomeCode) {
        let failed = Self.rejected(code, retryAfter: 4, "503")
        let result = SendResult(gathering: [failed, failed, Self.rejected(code, retryAfter: 6, "503")])
        #expect(result.refusal?.code == code)
        #expect(result.retryAfter == (code.isRetryable ? 6 : nil))
        #expect(result.upstreamCode == "503")
        #expect(SendResult(failed).refusal?.code == code)
    }

    @Test("Causes that differ or concern one recipient stay a list")
    func ownCauses() {
        let lists = [
            [Self.rejected(.unregistered), Self.rejected(.unregistered)],
            [Self.rejected(.upstreamUnavailable), Self.rejected(.upstreamInternal)],
            [Self.rejected(.upstreamUnavailable), Self.accepted],
            [Self.accepted, Self.rejected(.upstreamUnavailable)],
            [V1Reading(transportFailure: .outcomeUnknown, upstreamCode: "timeout")],
        ]
        for readings in lists {
            #expect(SendResult(gathering: readings).answer == .recipients(readings.map(\.outcome)))
        }
        let apns = Rejection(code: .upstreamCredentials, legacyName: .invalidAPNSCredential)
        let reading = V1Reading(answer: .rejected(apns), upstreamCode: "THIRD_PARTY_AUTH_ERROR")
        #expect(
            SendResult(gathering: [reading, reading]).answer == .recipients([.rejected(apns), .rejected(apns)])
        )
    }

    @Test("A group result counts the known members, at least one")
    func groups() {
        let reading = V1Reading(answer: .group, upstreamCode: "200")
        for (known, success) in [(nil, 1), (0, 1), (3, 3)] as [(Int?, Int)] {
            let expected = GroupOutcome(success: success, failure: 0, failedTokens: [])
            let result = SendResult(reading)
            #expect((known.map(result.counting) ?? result).answer == .group(expected))
        }
        #expect(SendResult(gathering: [reading]).refusal?.code == .upstreamProtocol)
    }

    @Test("A timed-out call has the code outcomeUnknown and the legacy name Unavailable")
    func transport() {
        let reading = V1Reading(transportFailure: .outcomeUnknown, upstreamCode: "timeout")
        #expect(reading.signal == .trouble)
        guard case .recipients(let outcomes) = SendResult(reading).answer,
            case .rejected(let rejection)? = outcomes.first, outcomes.count == 1
        else {
            Issue.record("the call is lost: \(reading)")
            return
        }
        #expect(rejection.code == .outcomeUnknown)
        #expect(rejection.legacyErrorName == .unavailable)
        let refused = V1Reading(transportFailure: .upstreamUnavailable, upstreamCode: "connect_failed")
        #expect(SendResult(refused).refusal?.code == .upstreamUnavailable)
    }

    @Test("A response is passed through only if it is FCM's own and keepsAnswer is set")
    func passThrough() {
        let error = #"{"error":{"code":404,"status":"NOT_FOUND","details":[{"@type":"google.firebase.fcm.v1.FcmError","#
        let body = error + #""errorCode":"UNREGISTERED"}]}}"#
        var gone = UpstreamResponse(404, body, retryAfter: "7", contentType: "application/json")
        let lost = UpstreamResponse(404, "gone")
        func passThrough(_ response: UpstreamResponse, keepsAnswer: Bool) -> Reply? {
            SendResult(V1ResponseReader.read(response, for: .token, now: 0, keepsAnswer: keepsAnswer))
                .passThrough?
                .reply
        }
        let reply = passThrough(gone, keepsAnswer: true)
        #expect(reply?.status == 404)
        #expect(reply?.contentType == "application/json")
        #expect(reply?.retryAfter == 7)
        #expect(reply?.body == gone.body)
        #expect(passThrough(gone, keepsAnswer: false) == nil)
        #expect(passThrough(lost, keepsAnswer: true) == nil)
        gone.contentType = nil
        #expect(passThrough(gone, keepsAnswer: true)?.contentType == "application/json; charset=UTF-8")
    }

    @Test("The legacy name of a failed call is kept if it is more specific than the code")
    func legacyName() {
        func name(_ code: OutcomeCode, _ name: LegacyErrorName) -> LegacyErrorName? {
            SendResult(refused: code, upstreamCode: "x", legacyName: name).refusal?.legacyName
        }
        #expect(name(.invalidField, .invalidTTL) == .invalidTTL)
        #expect(name(.invalidField, .missingCollapseKey) == nil)
        #expect(name(.upstreamCredentials, .invalidAPNSCredential) == .invalidAPNSCredential)
        #expect(name(.upstreamUnavailable, .quotaExceeded) == nil)
        let response = UpstreamResponse(200, #"{"error":"InvalidTtl"}"#)
        #expect(LegacyResponseReader.read(response, for: .token("a"), now: 0).refusal?.legacyName == .invalidTTL)
    }
}
