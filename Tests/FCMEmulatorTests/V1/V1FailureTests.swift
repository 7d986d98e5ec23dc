import Foundation
import Testing

@testable import FCMEmulator

@Suite("V1Failure")
struct V1FailureTests {
    @Test(
        "A failure is scripted by its v1 name or its legacy name",
        arguments: [
            ("UNREGISTERED", 404, "NOT_FOUND", "UNREGISTERED"), ("NotRegistered", 404, "NOT_FOUND", "UNREGISTERED"),
            ("SENDER_ID_MISMATCH", 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
            ("MismatchSenderId", 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
            ("QUOTA_EXCEEDED", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
            ("DeviceMessageRateExceeded", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
            ("UNAVAILABLE", 503, "UNAVAILABLE", "UNAVAILABLE"), ("Unavailable", 503, "UNAVAILABLE", "UNAVAILABLE"),
            ("INTERNAL", 500, "INTERNAL", "INTERNAL"), ("InternalServerError", 500, "INTERNAL", "INTERNAL"),
            ("THIRD_PARTY_AUTH_ERROR", 401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
            ("InvalidApnsCredential", 401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
            ("APNS_AUTH_ERROR", 401, "UNAUTHENTICATED", "APNS_AUTH_ERROR"),
            ("UNSPECIFIED_ERROR", 500, "UNKNOWN", "UNSPECIFIED_ERROR"),
            ("BRAND_NEW", 500, "UNKNOWN", "BRAND_NEW"),
            ("INVALID_ARGUMENT", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
            ("InvalidRegistration", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
            ("InvalidPackageName", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
            ("MessageTooBig", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
            ("RATE_LIMIT_EXCEEDED", 429, "RESOURCE_EXHAUSTED", nil),
            ("SERVICE_DISABLED", 403, "PERMISSION_DENIED", nil),
            ("ACCESS_TOKEN_EXPIRED", 401, "UNAUTHENTICATED", nil),
        ] as [(String, Int, String, String?)]
    )
    func scripted(name: String, code: Int, status: String, errorCode: String?) throws {
        let answer = V1Failure(scripted: name).answer
        #expect(answer.status == code)
        let body = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
        let error = try #require(body?["error"] as? [String: Any])
        #expect(error["code"] as? Int == code)
        #expect(error["status"] as? String == status)
        let details = try #require(error["details"] as? [[String: Any]])
        let fcm = details.first { $0["@type"] as? String == "type.googleapis.com/google.firebase.fcm.v1.FcmError" }
        #expect(fcm?["errorCode"] as? String == errorCode)
    }

    @Test("A v1 name in a token ends before an underscore and digits", arguments: V1Failure.scriptedNames)
    func names(name: String) {
        #expect(TokenScript(token: "dev-ERROR_\(name)_17") == .failed(name))
    }

    @Test("Errors are written in the service's form")
    func text() {
        #expect(
            V1Failure(scripted: "UNREGISTERED").answer
                == .json(
                    """
                    {"error":{"code":404,"message":"Requested entity was not found.","status":"NOT_FOUND","details":[\
                    {"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"UNREGISTERED"}]}}
                    """,
                    status: 404
                )
        )
        #expect(
            V1Failure(scripted: "THIRD_PARTY_AUTH_ERROR").details.last
                == .apnsError(status: 403, reason: "InvalidProviderToken")
        )
        #expect(
            V1Failure.notJSON("x").answer.body == """
                {"error":{"code":400,"message":"Invalid JSON payload received. x","status":"INVALID_ARGUMENT",\
                "details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[\
                {"description":"Invalid JSON payload received. x"}]}]}}
                """
        )
    }
}

@Suite("TokenScript")
struct TokenScriptTests {
    @Test("Every name of table 9 can be scripted", arguments: LegacyErrorName.allCases)
    func known(name: LegacyErrorName) {
        #expect(TokenScript(token: "ERROR_\(name.rawValue)") == .failed(name.rawValue))
        #expect(TokenScript(token: "dev-ERROR_\(name.rawValue)_17") == .failed(name.rawValue))
    }

    @Test(
        "Other tokens are accepted, replaced or failed by their text",
        arguments: [
            ("plain", TokenScript.accepted(canonical: nil)),
            ("ERROR_", .accepted(canonical: nil)),
            ("ERROR_QUOTA_EXCEEDED:x", .failed("QUOTA_EXCEEDED")),
            ("ERROR_NotRegisteredYet", .failed("NotRegisteredYet")),
            ("old-CANONICAL_new:token-1", .accepted(canonical: "new:token-1")),
            ("CANONICAL_", .accepted(canonical: nil)),
            ("CANONICAL_ERROR_NotRegistered", .failed("NotRegistered")),
        ]
    )
    func others(token: String, expected: TokenScript) {
        #expect(TokenScript(token: token) == expected)
    }
}
