import Foundation
import NIOCore
import Testing
import VectorTestKit

@testable import FCMEmulator

@Suite("V1MessageRules")
struct V1MessageRulesTests {
    private static func judge(_ text: String) throws -> AcceptedMessage {
        let (request, notes) = try V1SchemaCheck.run(try JSONValue.members(of: Array(text.utf8)))
        return try V1MessageRules(request, notes: notes).message()
    }

    @Test(
        "A wrong target is refused with an FcmError and the field",
        arguments: [
            ("{}", "message", "Recipient of the message is not set."),
            (#"{"message":{}}"#, "message", "Recipient of the message is not set."),
            (#"{"message":{"token":""}}"#, "message.token", "Invalid registration token"),
            (#"{"message":{"token":"/topics/a"}}"#, "message.token", "Invalid registration token"),
            (#"{"message":{"topic":"/topics/a"}}"#, "message.topic", "Invalid topic name"),
            (#"{"message":{"condition":"a"}}"#, "message.condition", "Invalid condition expression provided."),
        ]
    )
    func refusedTarget(text: String, field: String, description: String) {
        Self.expect(text, isRefusedAt: field, description)
    }

    private static let lateTTL = "Invalid ttl: it must be from 0 to 2419200 seconds"

    @Test(
        "Wrong values beside a token are refused with an FcmError and the field",
        arguments: [
            (#""data":{"from":"x"}"#, "data", "Invalid data payload key: from"),
            (#""android":{"data":{"google.x":"y"}}"#, "android.data", "Invalid data payload key: google.x"),
            (
                #""webpush":{"data":{"gcm.notification.x":"y"}}"#, "webpush.data",
                "Invalid data payload key: gcm.notification.x"
            ),
            (#""fcm_options":{"analytics_label":"a b"}"#, "fcm_options.analytics_label", "Invalid analytics label"),
            (#""android":{"ttl":"2419200.1s"}"#, "android.ttl", Self.lateTTL),
            (#""android":{"ttl":"-1s"}"#, "android.ttl", Self.lateTTL),
            (#""android":{"notification":{"color":"red"}}"#, "android.notification.color", "Invalid color"),
            (#""apns":{"headers":{"apns-priority":"9"}}"#, "apns.headers", "apns-priority must be 10, 5 or 1"),
            (
                #""apns":{"headers":{"apns-expiration":"60s"}}"#, "apns.headers",
                "apns-expiration must be a number of seconds"
            ),
            (#""apns":{"payload":{"aps":{"badge":"3"}}}"#, "apns.payload.aps.badge", "Invalid value: \"3\""),
            (
                #""apns":{"payload":{"aps":{"content-available":true}}}"#, "apns.payload.aps.content-available",
                "Invalid value: true"
            ),
            (#""data":{"k":"v"},"apns":{"headers":{"apns-priority":"10"}}"#, "token", "Invalid registration token"),
            (
                #""webpush":{"headers":{"Urgency":"HIGH"}}"#, "webpush.headers",
                "Urgency must be very-low, low, normal or high"
            ),
            (
                #""webpush":{"fcm_options":{"link":"http://e.com/"}}"#, "webpush.fcm_options.link",
                "The link must be an HTTPS URL"
            ),
        ]
    )
    func refused(members: String, field: String, description: String) {
        let text = #"{"message":{"token":"t",\#(members)}}"#
        Self.expect(text, isRefusedAt: "message.\(field)", description)
    }

    private static func expect(_ text: String, isRefusedAt field: String, _ description: String) {
        let failure = #expect(throws: V1Failure.self) { try Self.judge(text) }
        #expect(failure?.code == 400)
        #expect(failure?.status == "INVALID_ARGUMENT")
        #expect(
            failure?.details == [
                .fcmError("INVALID_ARGUMENT"), .badRequest([V1Violation(field: field, description: description)]),
            ]
        )
    }

    @Test(
        "The payload limit depends on the target",
        arguments: [
            (#""token":"t""#, 4_096, true), (#""token":"t""#, 4_097, false), (#""topic":"a""#, 2_048, true),
            (#""topic":"a""#, 2_049, false), (#""condition":"'a' in topics""#, 2_049, false),
        ]
    )
    func size(target: String, bytes: Int, isAccepted: Bool) throws {
        let value = String(repeating: "x", count: bytes - 1)
        let text = #"{"message":{\#(target),"data":{"k":"\#(value)"}}}"#
        if isAccepted {
            _ = try Self.judge(text)
        } else {
            #expect(throws: V1Failure.tooBig) { try Self.judge(text) }
        }
    }

    @Test("A collapse id for Apple has at most 64 bytes", arguments: [(64, true), (65, false)])
    func collapseID(count: Int, isAccepted: Bool) {
        let id = String(repeating: "c", count: count)
        let text = #"{"message":{"token":"t","apns":{"headers":{"apns-collapse-id":"\#(id)"}}}}"#
        let message = try? Self.judge(text)
        #expect((message != nil) == isAccepted)
    }

    @Test("A message without unusual values has no notes and is read completely")
    func complete() throws {
        let text = """
            {"validate_only":true,"message":{"condition":"'a' in topics && !('b' in topics)","data":{"k":""},\
            "notification":{"title":"T","body":"B"},"android":{"collapse_key":"c","priority":"HIGH","ttl":"3.5s",\
            "restricted_package_name":"com.x"},"apns":{"headers":{"apns-priority":"10"},\
            "payload":{"aps":{"mutable-content":1,"badge":0}}},"webpush":{"headers":{"TTL":"3"}}}}
            """
        let message = try Self.judge(text)
        #expect(message.target == .condition(try ConditionEvaluator("'a' in topics && !('b' in topics)", profile: .v1)))
        #expect(message.isDryRun)
        #expect(message.notes.isEmpty)
        #expect(
            message.content
                == DeliveredMessage(
                    data: ["k": ""],
                    notification: ["title": "T", "body": "B"],
                    collapseKey: "c",
                    priority: "high",
                    timeToLive: 3,
                    mutableContent: true,
                    restrictedPackageName: "com.x",
                    platforms: [
                        "android": """
                        {"collapse_key":"c","priority":"HIGH","restricted_package_name":"com.x","ttl":"3.5s"}
                        """,
                        "apns": """
                        {"headers":{"apns-priority":"10"},"payload":{"aps":{"badge":0,"mutable-content":1}}}
                        """,
                        "webpush": #"{"headers":{"TTL":"3"}}"#,
                    ]
                )
        )
    }

    @Test("The v1 messages of the vectors are accepted without notes", arguments: try TranslationVector.all())
    func translated(vector: TranslationVector) throws {
        for call in vector.calls {
            let message = try Self.judge(String(buffer: call.serialised()))
            #expect(message.notes.isEmpty)
        }
    }
}
