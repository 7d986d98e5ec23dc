import Foundation
import Testing

@testable import FCMEmulator

@Suite("LegacyFormValidator")
struct LegacyFormValidatorTests {
    @Test("Forms are judged as the vectors say", arguments: try SendVector.plaintext())
    func vectors(vector: SendVector) throws {
        let headers = [
            vector.contentType.map { HeaderField(name: "content-type", value: $0) },
            vector.authorization.map { HeaderField(name: "authorization", value: $0) },
        ]
        let request = ReceivedRequest(
            time: Date(timeIntervalSince1970: 0),
            method: vector.method,
            target: "/fcm/send",
            headers: headers.compactMap { $0 },
            bodyBytes: vector.body
        )
        do {
            let (message, format) = try LegacyEndpoint(serverKeys: []).message(in: request)
            #expect(format == .form)
            let expected = try LegacySendValidator.validate(try #require(vector.asJSON))
            #expect(message.target == expected.target)
            #expect(message.content == expected.content)
            #expect(message.isDryRun == expected.isDryRun)
            if let size = vector.payloadBytes {
                #expect(PayloadRules.byteCount(message.content.data) == size)
            }
        } catch let refused as Refused {
            #expect(!vector.isAccepted, "\(refused.reason)")
            #expect(refused.answer.status == vector.status)
            if let text = vector.answerText { #expect(refused.answer.body == text) }
        }
    }
}
