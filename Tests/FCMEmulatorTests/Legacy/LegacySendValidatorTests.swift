import Foundation
import NIOCore
import Testing
import VectorTestKit

@testable import FCMEmulator

@Suite("LegacySendValidator")
struct LegacySendValidatorTests {
    /// Reasons for which the emulator refuses a request that the gateway accepts.
    private static let stricter = ["is null", "is an empty string", "unknown member", "not representable"]

    @Test("The validator differs from the vectors only where it is stricter", arguments: try ValidationVector.all())
    func vectors(vector: ValidationVector) throws {
        let endpoint = LegacyEndpoint(serverKeys: ["AAAA-known"])
        do throws(Refused) {
            let (message, format) = try endpoint.message(in: vector.request)
            guard case .accepted(let expected) = vector.expectation else {
                Issue.record("accepted")
                return
            }
            #expect(format == .json)
            #expect(message.target.resultCount ?? 1 == expected.recipients)
            let size = PayloadRules.byteCount(message.content.data, message.content.notification)
            #expect(size == expected.payloadBytes)
        } catch {
            if Self.stricter.contains(where: error.reason.contains) { return }
            guard case .rejected(let expected) = vector.expectation else {
                Issue.record("refused: \(error.reason)")
                return
            }
            let answer = error.answer
            #expect(answer.status == expected.status, "\(error.reason)")
            if answer.status == 200 { #expect(answer.body.contains("\"\(expected.reason)\"")) }
        }
    }

    @Test(
        "An invalid or careless request is refused with a reason",
        arguments: [
            (#"{"to":"a","androd":{}}"#, "unknown member androd"),
            (#"{"to":"a","notification":{"vibrate":"x"}}"#, "unknown member notification.vibrate"),
            (#"{"to":"a","collapse_key":null}"#, "collapse_key is null; leave it out instead"),
            (#"{"to":"a","data":{"k":null}}"#, "data.k is null; leave it out instead"),
            (#"{"to":""}"#, "to is an empty string; leave it out instead"),
            (#"{"to":"a","notification":{"title":""}}"#, "notification.title is an empty string; leave it out instead"),
            (#"{"to":"a","time_to_live":"60"}"#, "time_to_live must not be a string"),
            (#"{"to":"a","dry_run":1}"#, "dry_run must not be a number"),
            (#"{"to":"a","registration_ids":["b"]}"#, "several targets: to, registration_ids"),
            (#"{"to":"/topics/a b"}"#, "bad topic name in to"),
            (#"{"condition":"'a' in topics &&"}"#, "bad condition: the condition ends too early"),
            (#"{"to":"a","notification":{"badge":"+1"}}"#, "notification.badge is not an integer from 0 to 2147483647"),
        ]
    )
    func reasons(body: String, reason: String) {
        #expect(throws: LegacyRefusal.invalidParameters(reason: reason)) {
            try LegacySendValidator.validate(Array(body.utf8))
        }
    }

    @Test(
        "Allowed but unusual values are noted",
        arguments: [
            (#"{"to":"a","dry_run":false}"#, "dry_run is false, which is its default"),
            (#"{"to":"a","data":{"n":1}}"#, "data.n is a number, not a string"),
            (#"{"to":"a","delay_while_idle":7}"#, "delay_while_idle is ignored"),
            (#"{"to":"a","data":{}}"#, "data is empty"),
            (#"{"notification_key":"g"}"#, "notification_key is deprecated; to does the same"),
            (#"{"to":"a","notification_key":"g"}"#, "notification_key is ignored beside another target"),
            (
                #"{"condition":"\"a\"  in topics"}"#,
                "the condition is not in canonical form: 'a' in topics"
            ),
        ]
    )
    func notes(body: String, note: String) throws {
        #expect(try LegacySendValidator.validate(Array(body.utf8)).notes == [note])
    }

    @Test("A request without unusual values has no notes and is read completely")
    func complete() throws {
        let body = """
            {"to":"tok","collapse_key":"c","priority":"high","time_to_live":60,"content_available":true,\
            "mutable_content":true,"restricted_package_name":"com.x","dry_run":true,"data":{"k":"","n":"1"},\
            "notification":{"title":"T","badge":"3","body_loc_args":"[\\"a\\",1]","color":"#00ffAA"}}
            """
        let message = try LegacySendValidator.validate(Array(body.utf8))
        #expect(message.target == .device("tok"))
        #expect(message.isDryRun)
        #expect(message.notes.isEmpty)
        #expect(
            message.content
                == DeliveredMessage(
                    data: ["k": "", "n": "1"],
                    notification: ["title": "T", "badge": "3", "body_loc_args": "[\"a\",1]", "color": "#00ffAA"],
                    collapseKey: "c",
                    priority: "high",
                    timeToLive: 60,
                    contentAvailable: true,
                    mutableContent: true,
                    restrictedPackageName: "com.x"
                )
        )
    }
}

@Suite("LegacyFormValidator")
struct LegacyFormValidatorTests {
    @Test("Forms are accepted and refused as in the vectors", arguments: try FormVector.all())
    func vectors(vector: FormVector) throws {
        do {
            let (message, format) = try LegacyEndpoint(serverKeys: []).message(in: vector.request)
            #expect(format == .form)
            guard case .accepted(let json, let payloadBytes) = vector.expectation else {
                Issue.record("accepted")
                return
            }
            let expected = try LegacySendValidator.validate(Array(json.readableBytesView))
            #expect(message.target == expected.target)
            #expect(message.content == expected.content)
            #expect(message.isDryRun == expected.isDryRun)
            if let payloadBytes { #expect(PayloadRules.byteCount(message.content.data) == payloadBytes) }
        } catch let refused as Refused {
            switch vector.expectation {
            case .accepted:
                Issue.record("refused: \(refused.reason)")
            case .rejected(let status, _, let body, _):
                #expect(refused.answer.status == status)
                #expect(refused.answer.body == body)
            case .unauthorized(let status):
                #expect(refused.answer.status == status)
            }
        }
    }
}

@Suite("LegacyAnswers")
struct LegacyAnswersTests {
    private let id = MulticastID(value: 216)

    @Test("InvalidParameters gets 400 for a single recipient and 200 in a multicast")
    func invalidParameters() {
        let answers = LegacyAnswers(format: .json)
        let results: [RecipientResult] = [.failed("InvalidParameters")]
        #expect(answers.devices(results, isSingle: true, multicastID: self.id).status == 400)
        #expect(answers.devices(results, isSingle: false, multicastID: self.id).status == 200)
    }

    @Test("Form responses are lines without a final line feed")
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
}
