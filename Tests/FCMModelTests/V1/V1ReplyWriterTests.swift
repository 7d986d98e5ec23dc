import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("V1ReplyWriter")
struct V1ReplyWriterTests {
    typealias Row = (rejection: Rejection, status: Int, rpc: String, code: String?, field: String?, retryAfter: Int?)

    private static let rejections: [Row] = [
        (Rejection(code: .unregistered), 404, "NOT_FOUND", "UNREGISTERED", nil, nil),
        (Rejection(code: .senderMismatch), 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", nil, nil),
        (Rejection(code: .invalidToken), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.token", nil),
        (Rejection(code: .invalidTarget), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message", nil),
        (
            Rejection(code: .packageMismatch), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT",
            "message.android.restricted_package_name", nil
        ),
        (
            Rejection(code: .invalidField, legacyName: .invalidTTL), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT",
            "message.android.ttl", nil
        ),
        (Rejection(code: .invalidField), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", nil, nil),
        (Rejection(code: .invalidDataKey), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.data", nil),
        (Rejection(code: .messageTooBig), 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message", nil),
        (Rejection(code: .deviceRateExceeded), 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", nil, 60),
        (Rejection(code: .tenantRateExceeded, retryAfter: 3), 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", nil, 3),
        (
            Rejection(code: .upstreamCredentials, legacyName: .invalidAPNSCredential), 401, "UNAUTHENTICATED",
            "THIRD_PARTY_AUTH_ERROR", nil, nil
        ),
        (Rejection(code: .upstreamCredentials), 500, "INTERNAL", "INTERNAL", nil, nil),
        (Rejection(code: .upstreamInternal, retryAfter: 8), 500, "INTERNAL", "INTERNAL", nil, 8),
        (Rejection(code: .upstreamUnavailable), 503, "UNAVAILABLE", "UNAVAILABLE", nil, 5),
        (Rejection(code: .overloaded, retryAfter: 2), 503, "UNAVAILABLE", "UNAVAILABLE", nil, 2),
        (Rejection(code: .unauthenticated), 401, "UNAUTHENTICATED", nil, nil, nil),
        (Rejection(code: .forbidden), 403, "PERMISSION_DENIED", nil, nil, nil),
        (Rejection(code: .notFound), 403, "PERMISSION_DENIED", nil, nil, nil),
        (Rejection(code: .outcomeUnknown), 504, "DEADLINE_EXCEEDED", nil, nil, nil),
        (Rejection(code: .idempotencyInProgress), 409, "ABORTED", nil, nil, 1),
    ]

    @Test("Every rejection has its form in v1", arguments: Self.rejections)
    func rejection(row: Row) throws {
        let reply = V1ReplyWriter.reply(refusing: row.rejection)
        #expect(reply.status == row.status)
        #expect(reply.contentType == "application/json; charset=UTF-8")
        #expect(reply.retryAfter == row.retryAfter)
        var root = try VectorJSON(parsing: reply.body).members()
        var error = try root.take("error").members()
        try root.finish()
        #expect(try error.take("code").integer() == row.status)
        #expect(try error.take("status").text() == row.rpc)
        #expect(try !error.take("message").text().isEmpty)
        var codes: [String] = []
        var fields: [String] = []
        for detail in try error.takeIfPresent("details")?.elements() ?? [] {
            var members = try detail.members()
            switch try members.take("@type").text() {
            case "type.googleapis.com/google.firebase.fcm.v1.FcmError":
                codes.append(try members.take("errorCode").text())
            case "type.googleapis.com/google.rpc.BadRequest":
                for violation in try members.take("fieldViolations").elements() {
                    var violation = try violation.members()
                    fields.append(try violation.take("field").text())
                    #expect(try !violation.take("description").text().isEmpty)
                    try violation.finish()
                }
            case let type: Issue.record("unknown detail \(type)")
            }
            try members.finish()
        }
        try error.finish()
        #expect(codes == [row.code].compactMap { $0 })
        #expect(fields == [row.field].compactMap { $0 })
    }

    @Test("A written rejection is read back with its code and legacy name", arguments: LegacyErrorName.allCases)
    func readBack(name: LegacyErrorName) {
        let rejection = Rejection(code: name.outcomeCode, legacyName: name)
        let reply = V1ReplyWriter.reply(refusing: rejection)
        let retryAfter = reply.retryAfter.map { String($0) }
        let response = UpstreamResponse(status: reply.status, retryAfter: retryAfter, body: reply.body)
        let kind: Target.Kind = name == .topicsMessageRateExceeded ? .topic : .token
        let back = V1ResponseReader.read(response, for: kind, now: 0).rejection
        #expect(back?.code == rejection.code)
        #expect(back?.legacyErrorName == rejection.legacyErrorName)
    }

    @Test("An accepted message's name contains its project")
    func acceptance() {
        let outcome = RecipientOutcome.accepted(Acceptance(messageID: "0:15%31", replacementToken: "new"))
        let writer = V1ReplyWriter(project: "my-app")
        let reply = writer.reply(to: outcome)
        #expect(reply.status == 200)
        #expect(String(buffer: reply.body) == #"{"name":"projects/my-app/messages/0:15%31"}"#)
        #expect(
            writer.reply(to: RecipientOutcome.rejected(.unregistered))
                == V1ReplyWriter.reply(refusing: Rejection(code: .unregistered))
        )
        #expect(V1ReplyWriter.groupAcceptance.status == 200)
        #expect(String(buffer: V1ReplyWriter.groupAcceptance.body) == "{}")
    }
}
