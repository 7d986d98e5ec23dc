import FCMModel
import NIOCore
import Testing
import VectorTestKit

@Suite("LegacyRequestDecoder")
struct LegacyRequestDecoderTests {
    /// Decided by the method or the credential before the body is read; the route's tests cover them.
    private static let routeVectors = ["VAL-153", "VAL-154", "VAL-155", "VAL-156", "VAL-159"]
    /// These have another spelling of the JSON media type and reach the decoder.
    private static let mediaTypeVectors = ["VAL-157", "VAL-158"]

    @Test(
        "Requests are accepted and refused as in the vectors",
        arguments: try ValidationVector.all().filter(\.reachesDecoder)
    )
    func vectors(vector: ValidationVector) throws {
        let result: Result<LegacySendRequest, Refusal>
        var shape = LegacyReplyWriter.Shape.results(count: 1)
        do throws(Refusal) {
            result = .success(try LegacyRequestDecoder.decode(vector.body, shape: &shape))
        } catch {
            result = .failure(error)
        }
        switch (vector.expectation, result) {
        case (.accepted(let expected), .success(let request)):
            #expect(Self.kind(of: request.target) == expected.target)
            #expect(request.target.recipientCount == expected.recipients)
            #expect(request.payloadBytes == expected.payloadBytes)
            #expect(request.localErrors.mapValues(\.rawValue) == expected.localErrors)
        case (.rejected(let expected), .failure(let error)):
            try Self.expect(expected, of: error, shape)
        case (.accepted, .failure(let error)):
            Issue.record("refused: \(error)")
        case (.rejected(let expected), .success):
            Issue.record("accepted instead of \(expected.reason)")
        }
    }

    @Test("Exactly the listed vectors do not reach the decoder")
    func completeness() throws {
        let vectors = try ValidationVector.all()
        #expect(vectors.filter { !$0.reachesDecoder }.map(\.id) == Self.routeVectors)
        #expect(vectors.filter { $0.describesRoute && $0.reachesDecoder }.map(\.id) == Self.mediaTypeVectors)
        for vector in vectors where !vector.reachesDecoder {
            guard case .rejected(let rejected) = vector.expectation else {
                Issue.record("\(vector.id) is accepted")
                continue
            }
            #expect(["Unauthorized", "MethodNotAllowed"].contains(rejected.reason))
        }
    }

    @Test(
        "Null, empty and false values count as absent",
        arguments: [
            #"{"to": "t"}"#,
            #"{"to": "t", "registration_ids": null, "condition": "", "notification_key": "", "collapse_key": ""}"#,
            #"{"to": "t", "priority": "", "time_to_live": null, "restricted_package_name": "", "dry_run": false}"#,
            #"{"to": "t", "content_available": false, "mutable_content": null, "delay_while_idle": true}"#,
            #"{"to": "t", "data": {}, "notification": {}}"#,
            #"{"to": "t", "data": {"k": null}, "notification": {"title": "", "badge": "", "title_loc_args": null}}"#,
            #"{"to": "t", "data": null, "notification": {"unknown": "x", "body_loc_args": ""}}"#,
        ]
    )
    func absence(text: String) throws {
        let request = try Self.decode(text)
        #expect(request.target == .token("t"))
        #expect(request.message == Message())
        #expect(request.payloadBytes == 0)
    }

    @Test("A combining mark after the prefix makes a bad topic, not a token")
    func combiningMarksInTopics() throws {
        #expect(throws: Refusal(.invalidField, "to holds an invalid topic name")) {
            try Self.decode("{\"to\": \"/topics/\u{301}news\"}")
        }
        let request = try Self.decode("{\"registration_ids\": [\"a\", \"/topics/\u{301}\", \"\"]}")
        #expect(request.localErrors == [1: .invalidRegistration, 2: .missingRegistration])
    }

    private static func decode(_ text: String) throws -> LegacySendRequest {
        try LegacyRequestDecoder.decode(ByteBuffer(string: text))
    }

    /// The vectors' name for a target.
    private static func kind(of target: Target) -> String {
        switch target {
        case .token: "token"
        case .tokens: "multicast"
        case .topic: "topic"
        case .condition: "condition"
        case .notificationKey: "group"
        case .installation, .installations, .deviceGroup: "unknown to the protocol"
        }
    }

    private static func expect(
        _ expected: ValidationVector.Rejected,
        of refusal: Refusal,
        _ shape: LegacyReplyWriter.Shape
    ) throws {
        let reason = refusal.code == .malformedJSON ? "InvalidJson" : refusal.legacyErrorName.rawValue
        #expect(reason == expected.reason)
        if refusal.code == .messageTooBig {
            #expect(refusal.detail == expected.payloadBytes.map { "The payload has \($0) bytes" })
        } else {
            #expect(expected.payloadBytes == nil)
        }

        let reply = LegacyReplyWriter(shape: shape, format: .json, multicastID: 4_711).reply(to: refusal)
        #expect(reply.status == expected.status)
        guard let body = expected.body else {
            // The text is not specified but must not be empty.
            #expect(reply.contentType == (expected.contentType ?? "text/plain") + "; charset=UTF-8")
            #expect(reply.body.readableBytes > 0)
            return
        }
        #expect(reply.contentType == (expected.contentType ?? "application/json") + "; charset=UTF-8")
        if expected.contentType == "text/plain" {
            #expect(String(buffer: reply.body) == (try body.text()))
        } else {
            let answer = try VectorJSON(parsing: reply.body)
            #expect(body.mismatches(in: answer, allowingMore: expected.status == 400) == [])
        }
    }
}
