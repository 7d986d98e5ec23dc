import FCMModel
import NIOCore
import Testing

@Suite("InstanceIDBatch and InstanceIDReply")
struct InstanceIDFacadeModelTests {
    private func code(_ body: String) -> OutcomeCode? {
        do throws(Refusal) {
            _ = try InstanceIDBatch(parsing: ByteBuffer(string: body))
            return nil
        } catch {
            #expect(error.detail?.isEmpty == false)
            return error.code
        }
    }

    @Test("A batch is read; members that the API does not know do not matter")
    func batch() throws {
        let body = #"{"extra":1,"to":"/topics/a%b","registration_tokens":["t2","","t1","t2"]}"#
        let batch = try InstanceIDBatch(parsing: ByteBuffer(string: body))
        #expect(batch.topic.text == "a%b")
        #expect(batch.tokens == ["t2", "", "t1", "t2"])
    }

    @Test(
        "A batch that is wrong",
        arguments: [
            ("", OutcomeCode.malformedJSON), ("[]", .malformedJSON), ("{", .malformedJSON),
            (#"{"to":"/topics/a","to":"/topics/b","registration_tokens":["t"]}"#, .malformedJSON),
            (#"{"registration_tokens":["t"]}"#, .invalidField), (#"{"to":"/topics/a"}"#, .invalidField),
            (#"{"to":"a","registration_tokens":["t"]}"#, .invalidField),
            (#"{"to":"/topics/","registration_tokens":["t"]}"#, .invalidField),
            (#"{"to":"/topics/..","registration_tokens":["t"]}"#, .invalidField),
            (#"{"to":"/topics/a b","registration_tokens":["t"]}"#, .invalidField),
            (#"{"to":7,"registration_tokens":["t"]}"#, .invalidField),
            (#"{"to":"/topics/a","registration_tokens":[]}"#, .invalidField),
            (#"{"to":"/topics/a","registration_tokens":"t"}"#, .invalidField),
            (#"{"to":"/topics/a","registration_tokens":[1]}"#, .invalidField),
            (#"{"to":"/topics/a","registration_tokens":["t",null]}"#, .invalidField),
        ]
    )
    func wrong(body: String, code: OutcomeCode) {
        #expect(self.code(body) == code)
    }

    @Test("A batch has at most a thousand devices")
    func size() {
        func body(_ count: Int) -> String {
            let tokens = (0..<count).map { "\"t\($0)\"" }.joined(separator: ",")
            return #"{"to":"/topics/a","registration_tokens":[\#(tokens)]}"#
        }
        #expect(self.code(body(1_000)) == nil)
        #expect(self.code(body(1_001)) == .invalidField)
    }

    @Test("Results are empty objects and names of errors")
    func results() {
        let reply = InstanceIDReply([
            .done, .rejected(.unregistered), .rejected(.invalidToken), .rejected(.tooManyTopics),
        ])
        #expect(reply.status == 200)
        #expect(
            String(buffer: reply.body)
                == #"{"results":[{},{"error":"NOT_FOUND"},{"error":"INVALID_ARGUMENT"},{"error":"TOO_MANY_TOPICS"}]}"#
        )
    }

    @Test("A delay is named where no device is done")
    func delay() {
        let late = SubscriptionOutcome.rejected(Rejection(code: .tenantRateExceeded, retryAfter: 7))
        let later = SubscriptionOutcome.rejected(Rejection(code: .tenantRateExceeded, retryAfter: 9))
        #expect(InstanceIDReply([late, later, late]).retryAfter == 9)
        #expect(InstanceIDReply([late, .done, later]).retryAfter == nil)
        #expect(InstanceIDReply([.rejected(.unregistered)]).retryAfter == nil)
    }

    @Test("Only the death of a device is told as one, and only our own key as one that is refused")
    func names() {
        for code in OutcomeCode.allCases {
            #expect((code.instanceIDErrorName == .notFound) == (code == .unregistered), "\(code)")
            let isCaller = code == .unauthenticated || code == .forbidden
            #expect((code.instanceIDErrorName == .unauthenticated) == isCaller, "\(code)")
        }
    }

    @Test(
        "A refused request has the error's status",
        arguments: [
            (OutcomeCode.unauthenticated, 401, "UNAUTHENTICATED", Int?.none),
            (.invalidField, 400, "INVALID_ARGUMENT", nil),
            (.methodNotAllowed, 405, "INVALID_ARGUMENT", nil), (.unsupportedMediaType, 415, "INVALID_ARGUMENT", nil),
            (.upstreamCredentials, 500, "INTERNAL", nil), (.upstreamUnavailable, 503, "UNAVAILABLE", 5),
            (.tenantRateExceeded, 429, "RESOURCE_EXHAUSTED", 5), (.unregistered, 404, "NOT_FOUND", nil),
            (.senderMismatch, 403, "PERMISSION_DENIED", nil),
        ]
    )
    func refusals(code: OutcomeCode, status: Int, name: String, retryAfter: Int?) {
        let reply = InstanceIDReply(Refusal(code))
        #expect(reply.status == status)
        #expect(String(buffer: reply.body) == #"{"error":"\#(name)"}"#)
        #expect(reply.retryAfter == retryAfter)
    }

    @Test("What is known of a device is written as the API writes it")
    func info() {
        let info = RegistrationInfo(
            application: "com.example",
            platform: "IOS",
            subscriptions: [
                TopicSubscription(topic: "b", since: "2026-01-15T01:30:15Z"), TopicSubscription(topic: "a"),
                TopicSubscription(topic: "c", since: "2025-03-14"),
            ]
        )
        #expect(
            String(buffer: InstanceIDReply(info, includesTopics: true).body)
                == #"{"application":"com.example","platform":"IOS","rel":{"topics":{"a":{},"b":{"addDate":"2026-01-15"},"c":{"addDate":"2025-03-14"}}}}"#
        )
        #expect(
            String(buffer: InstanceIDReply(info, includesTopics: false).body)
                == #"{"application":"com.example","platform":"IOS"}"#
        )
        #expect(String(buffer: InstanceIDReply(RegistrationInfo(), includesTopics: true).body) == "{}")
    }

    @Test("Subscriptions are written as v1 writes them")
    func v1() throws {
        let topic = try #require(TopicName("a%b"))
        #expect(
            String(buffer: V1Reply.subscribed(to: topic, token: "t", project: "p").body)
                == #"{"name":"projects/p/registrations/t/topicSubscriptions/a%b","topicName":"a%b"}"#
        )
        #expect(String(buffer: V1Reply.unsubscribed.body) == "{}")
        let list = [
            TopicSubscription(topic: "a", since: "2025-03-14"),
            TopicSubscription(topic: "b", since: "2026-01-15T01:30:15Z"),
        ]
        #expect(
            String(buffer: V1Reply.subscriptions(list, nextPage: "n", token: "t", project: "p").body)
                == #"{"topicSubscriptions":[{"name":"projects/p/registrations/t/topicSubscriptions/a","topicName":"a","createTime":"2025-03-14T00:00:00Z"},{"name":"projects/p/registrations/t/topicSubscriptions/b","topicName":"b","createTime":"2026-01-15T01:30:15Z"}],"nextPageToken":"n"}"#
        )
        #expect(V1Reply(refusingSubscription: Rejection(code: .unregistered)).status == 404)
        #expect(V1Reply(refusingSubscription: Rejection(code: .invalidToken)).status == 400)
        #expect(V1Reply(refusingSubscription: Rejection(code: .tooManyTopics)).status == 400)
        #expect(V1Reply.methodNotAllowed.status == 405)
    }
}
