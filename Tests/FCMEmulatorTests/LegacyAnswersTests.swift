import Testing

@testable import FCMEmulator

@Suite("LegacyAnswers")
struct LegacyAnswersTests {
    private let id = MulticastID(value: 216)

    @Test("Results keep the request's order, counts add up")
    func devices() {
        let results: [RecipientResult] = [
            .accepted(messageID: "0:1%a", canonical: nil), .failed("NotRegistered"),
            .accepted(messageID: "0:1%b", canonical: "n\"w"),
        ]
        let answer = LegacyAnswers(format: .json).devices(results, isSingle: false, multicastID: self.id)
        #expect(answer.status == 200)
        #expect(answer.headers == [HeaderField(name: "Content-Type", value: "application/json; charset=UTF-8")])
        #expect(
            answer.body == #"{"multicast_id":216,"success":2,"failure":1,"canonical_ids":1,"results":"#
                + #"[{"message_id":"0:1%a"},{"error":"NotRegistered"},"#
                + #"{"message_id":"0:1%b","registration_id":"n\"w"}]}"#
        )
    }

    @Test("A single InvalidParameters is a status of its own, in a multicast it is a result")
    func invalidParameters() {
        let answers = LegacyAnswers(format: .json)
        let results: [RecipientResult] = [.failed("InvalidParameters")]
        #expect(answers.devices(results, isSingle: true, multicastID: self.id).status == 400)
        #expect(answers.devices(results, isSingle: false, multicastID: self.id).status == 200)
    }

    @Test("Forms are answered in lines without a final break")
    func forms() {
        let answers = LegacyAnswers(format: .form)
        let accepted: [RecipientResult] = [.accepted(messageID: "0:1%a", canonical: "new")]
        #expect(
            answers.devices(accepted, isSingle: true, multicastID: self.id) == .text("id=0:1%a\nregistration_id=new")
        )
        #expect(
            answers.devices([.failed("NotRegistered")], isSingle: true, multicastID: self.id)
                == .text("Error=NotRegistered")
        )
    }

    @Test("A failed topic message has the shape of its own")
    func topic() {
        let refusal = LegacyRefusal.failed(.invalidTTL, results: nil, reason: "")
        #expect(
            LegacyAnswers(format: .json).refusal(refusal, multicastID: self.id) == .json(#"{"error":"InvalidTtl"}"#)
        )
    }
}
