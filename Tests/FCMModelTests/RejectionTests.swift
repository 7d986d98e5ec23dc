import FCMModel
import Testing

@Suite("Rejection")
struct RejectionTests {
    @Test("Every name of the protocol survives its way through a code", arguments: LegacyErrorName.allCases)
    func names(name: LegacyErrorName) {
        let rejection = Rejection(code: name.outcomeCode, legacyName: name)
        #expect(rejection.legacyErrorName == name.current)
        #expect(rejection.legacyErrorName.current == rejection.legacyErrorName)
    }

    @Test("A name is kept only where the code alone would be called something else")
    func equality() {
        #expect(Rejection(code: .unregistered, legacyName: .notRegistered) == Rejection(code: .unregistered))
        #expect(Rejection(code: .invalidField, legacyName: .invalidTTL) != Rejection(code: .invalidField))
        #expect(Rejection(code: .upstreamCredentials).legacyErrorName == .internalServerError)
    }

    @Test("Only the death of a token is told as one, and whatever can be repeated as something to repeat")
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
