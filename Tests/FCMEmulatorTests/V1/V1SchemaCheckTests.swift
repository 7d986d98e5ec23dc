import Foundation
import Testing

@testable import FCMEmulator

@Suite("V1SchemaCheck")
struct V1SchemaCheckTests {
    private static func check(_ text: String) throws -> (members: [String: JSONValue], notes: [String]) {
        try V1SchemaCheck.run(try JSONValue.members(of: Array(text.utf8)))
    }

    private static let fcm = "type.googleapis.com/google.firebase.fcm.v1."
    private static let protobuf = "type.googleapis.com/google.protobuf."

    private static func expect(_ text: String, isRefusedAt field: String?, _ description: String) {
        let expected = V1Failure(
            code: 400,
            status: "INVALID_ARGUMENT",
            message: description,
            details: [.badRequest([V1Violation(field: field, description: description)])]
        )
        #expect(throws: expected) { try Self.check(text) }
    }

    @Test(
        "Values of a wrong type are refused like Google's front end does, without an FcmError",
        arguments: [
            (#""data":{"k":12}"#, "data[0].value", "TYPE_STRING", "12"),
            (#""data":{"a":"b","k":null}"#, "data[1].value", "TYPE_STRING", "null"),
            (#""token":7"#, "token", "TYPE_STRING", "7"),
            (#""android":{"priority":"URGENT"}"#, "android.priority", "\(fcm)AndroidMessagePriority", #""URGENT""#),
            (
                #""android":{"notification":{"visibility":"private"}}"#, "android.notification.visibility",
                "\(fcm)AndroidNotification.Visibility", #""private""#
            ),
            (
                #""android":{"ttl":"60"}"#, "android.ttl", "\(protobuf)Duration",
                "Illegal duration format; duration must end with 's'"
            ),
            (#""android":{"ttl":60}"#, "android.ttl", "\(protobuf)Duration", "60"),
            (
                #""android":{"notification":{"body_loc_args":["a",1]}}"#, "android.notification.body_loc_args[1]",
                "TYPE_STRING", "1"
            ),
            (
                #""android":{"notification":{"body_loc_args":"[]"}}"#, "android.notification.body_loc_args",
                "TYPE_STRING", #""[]""#
            ),
            (
                #""android":{"notification":{"notification_count":1.5}}"#, "android.notification.notification_count",
                "TYPE_INT32", "1.5"
            ),
            (
                #""android":{"notification":{"event_time":"yesterday"}}"#, "android.notification.event_time",
                "\(protobuf)Timestamp", "Illegal timestamp format"
            ),
            (#""apns":{"payload":"{}"}"#, "apns.payload", "\(protobuf)Struct", #""{}""#),
        ] as [(String, String, String, String)]
    )
    func wrongType(members: String, field: String, type: String, value: String) {
        let description = "Invalid value at 'message.\(field)' (\(type)), \(value)"
        Self.expect(#"{"message":{\#(members)}}"#, isRefusedAt: "message.\(field)", description)
    }

    @Test(
        "Unknown names and other structural errors are refused without an FcmError",
        arguments: [
            (
                #"{"message":{"tokn":"x"}}"#, "message",
                #"Invalid JSON payload received. Unknown name "tokn" at 'message': Cannot find field."#
            ),
            (#"{"dry_run":true}"#, nil, #"Invalid JSON payload received. Unknown name "dry_run": Cannot find field."#),
            (#"{"validate_only":"true"}"#, "validate_only", "Invalid value at 'validate_only' (TYPE_BOOL), \"true\""),
            (#"{"message":"x"}"#, "message", "Invalid value at 'message' (\(fcm)Message), \"x\""),
            (
                #"{"message":{"token":["a"]}}"#, "message",
                #"Invalid JSON payload received. Unknown name "token" at 'message': "#
                    + "Proto field is not repeating, cannot start list."
            ),
            (
                #"{"message":{"token":"a","topic":"b"}}"#, "message",
                "Invalid value at 'message' (oneof), oneof field 'target' is already set. Cannot set 'topic'"
            ),
            (
                #"{"message":{"android":{"collapse_key":"a","collapseKey":"b"}}}"#, "message.android",
                "Invalid value at 'message.android', field 'collapse_key' is given twice."
            ),
        ] as [(String, String?, String)]
    )
    func refused(text: String, field: String?, description: String) {
        Self.expect(text, isRefusedAt: field, description)
    }

    @Test("Every violation is reported")
    func several() {
        let failure = #expect(throws: V1Failure.self) { try Self.check(#"{"message":{"token":1,"x":2},"y":3}"#) }
        #expect(failure?.message.split(separator: "\n").count == 3)
    }

    @Test("Both spellings are read and normalized, null is absent, and notes name the differences")
    func spellings() throws {
        let text = """
            {"validateOnly":true,"message":{"token":"t","topic":null,\
            "android":{"restrictedPackageName":"com.x","priority":"high"}}}
            """
        let (members, notes) = try Self.check(text)
        #expect(
            JSONValue.object(members).compactJSON == """
                {"message":{"android":{"priority":"HIGH","restricted_package_name":"com.x"},"token":"t"},\
                "validate_only":true}
                """
        )
        #expect(
            notes == [
                "message.android.priority is written high",
                "message.android.restricted_package_name is written restrictedPackageName", "message.topic is null",
                "validate_only is written validateOnly",
            ]
        )
    }

    @Test(
        "Allowed but unusual values are noted",
        arguments: [
            (#"{"validate_only":false}"#, "validate_only is false, which is its default"),
            (#"{"message":{"data":{}}}"#, "message.data is empty"),
            (#"{"message":{"android":{}}}"#, "message.android is empty"),
            (#"{"message":{"notification":{"title":""}}}"#, "message.notification.title is an empty string"),
        ]
    )
    func notes(text: String, note: String) throws {
        #expect(try Self.check(text).notes == [note])
    }
}
