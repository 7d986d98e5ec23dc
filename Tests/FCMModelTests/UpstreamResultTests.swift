import FCMModel
import NIOCore
import Testing

@Suite("UpstreamResult")
struct UpstreamResultTests {
    private static let accepted = V1Reading(answer: .accepted(messageID: "m"), upstreamCode: "200")

    private static func rejected(_ code: OutcomeCode, retryAfter: Int? = nil, _ word: String = "X") -> V1Reading {
        V1Reading(answer: .rejected(Rejection(code: code, retryAfter: retryAfter)), upstreamCode: word)
    }

    @Test("Outcomes keep the order of the calls, the longest delay stands for all")
    func order() {
        let result = UpstreamResult(gathering: [
            Self.accepted, Self.rejected(.deviceRateExceeded, retryAfter: 9, "QUOTA_EXCEEDED"),
            Self.rejected(.unregistered, retryAfter: 99), Self.rejected(.upstreamUnavailable, retryAfter: 12),
        ])
        #expect(
            result.answer
                == .recipients([
                    .accepted(Acceptance(messageID: "m")),
                    .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 9)),
                    .rejected(Rejection(code: .unregistered, retryAfter: 99)),
                    .rejected(Rejection(code: .upstreamUnavailable, retryAfter: 12)),
                ])
        )
        #expect(result.retryAfter == 12)
        #expect(result.upstreamCode == "QUOTA_EXCEEDED")
    }

    @Test(
        "One cause that is nobody's own makes one failure",
        arguments: [OutcomeCode.upstreamUnavailable, .upstreamCredentials, .upstreamInternal, .upstreamProtocol]
    )
    func commonCause(code: OutcomeCode) {
        let failed = Self.rejected(code, retryAfter: 4, "503")
        let result = UpstreamResult(gathering: [failed, failed, Self.rejected(code, retryAfter: 6, "503")])
        #expect(result.answer == .failed(code))
        #expect(result.retryAfter == (code.isRetryable ? 6 : nil))
        #expect(result.upstreamCode == "503")
        #expect(UpstreamResult(failed).answer == .failed(code))
    }

    @Test("Causes that differ, or are somebody's own, stay a list")
    func ownCauses() {
        let lists = [
            [Self.rejected(.unregistered), Self.rejected(.unregistered)],
            [Self.rejected(.upstreamUnavailable), Self.rejected(.upstreamInternal)],
            [Self.rejected(.upstreamUnavailable), Self.accepted],
            [Self.accepted, Self.rejected(.upstreamUnavailable)],
            [V1Reading(transportFailure: .outcomeUnknown, upstreamCode: "timeout")],
        ]
        for readings in lists {
            #expect(UpstreamResult(gathering: readings).answer == .recipients(readings.map(\.outcome)))
        }
        let apns = Rejection(code: .upstreamCredentials, legacyName: .invalidAPNSCredential)
        let reading = V1Reading(answer: .rejected(apns), upstreamCode: "THIRD_PARTY_AUTH_ERROR")
        #expect(
            UpstreamResult(gathering: [reading, reading]).answer == .recipients([.rejected(apns), .rejected(apns)])
        )
    }

    @Test("A group's answer counts the members that the gateway knows, and at least one")
    func groups() {
        let reading = V1Reading(answer: .group, upstreamCode: "200")
        for (known, success) in [(nil, 1), (0, 1), (3, 3)] as [(Int?, Int)] {
            let expected = GroupOutcome(success: success, failure: 0, failedTokens: [])
            #expect(UpstreamResult(reading, knownMembers: known).answer == .group(expected))
        }
        #expect(UpstreamResult(gathering: [reading]).answer == .failed(.upstreamProtocol))
    }

    @Test("A call without an answer is Unavailable in legacy words, and what it is in those of REST")
    func transport() {
        let reading = V1Reading(transportFailure: .outcomeUnknown, upstreamCode: "timeout")
        #expect(reading.signal == .trouble)
        guard case .recipients(let outcomes) = UpstreamResult(reading).answer,
            case .rejected(let rejection)? = outcomes.first, outcomes.count == 1
        else {
            Issue.record("the call is lost: \(reading)")
            return
        }
        #expect(rejection.code == .outcomeUnknown)
        #expect(rejection.legacyErrorName == .unavailable)
        let refused = V1Reading(transportFailure: .upstreamUnavailable, upstreamCode: "connect_failed")
        #expect(UpstreamResult(refused).answer == .failed(.upstreamUnavailable))
    }

    @Test("An answer is kept only where it is to be handed on and the reader was asked to keep it")
    func handedOn() {
        let error = #"{"error":{"code":404,"status":"NOT_FOUND","details":[{"@type":"google.firebase.fcm.v1.FcmError","#
        let gone = V1Response(
            status: 404,
            retryAfter: "7",
            contentType: "application/json",
            body: ByteBuffer(string: error + #""errorCode":"UNREGISTERED"}]}}"#)
        )
        let lost = V1Response(status: 404, retryAfter: nil, body: ByteBuffer(string: "gone"))
        func handedOn(_ response: V1Response, keepsAnswer: Bool) -> V1Response? {
            UpstreamResult(V1ResponseReader.read(response, for: .token, now: 0, keepsAnswer: keepsAnswer))
                .handedOn?
                .response
        }
        #expect(handedOn(gone, keepsAnswer: true) == gone)
        #expect(handedOn(gone, keepsAnswer: false) == nil)
        #expect(handedOn(lost, keepsAnswer: true) == nil)
    }

    @Test("Legacy's name for a failed call is kept where it says more than the code")
    func legacyName() {
        func name(_ answer: UpstreamResult.Answer, _ name: LegacyErrorName) -> LegacyErrorName? {
            UpstreamResult(answer: answer, upstreamCode: "x", legacyName: name).legacyName
        }
        #expect(name(.failed(.invalidField), .invalidTTL) == .invalidTTL)
        #expect(name(.failed(.invalidField), .missingCollapseKey) == nil)
        #expect(name(.failed(.upstreamCredentials), .invalidAPNSCredential) == .invalidAPNSCredential)
        #expect(name(.failed(.upstreamUnavailable), .quotaExceeded) == nil)
        #expect(name(.recipients([]), .invalidTTL) == nil)
        let response = LegacyResponse(
            status: 200,
            retryAfter: nil,
            body: ByteBuffer(string: #"{"error":"InvalidTtl"}"#)
        )
        #expect(LegacyResponseReader.read(response, for: .token("a"), now: 0).legacyName == .invalidTTL)
    }
}
