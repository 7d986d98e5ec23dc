import FCMModel
import NIOCore
import Testing

struct V1TopicResponseReaderTests {
    private static let fcmError = #""@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode""#

    private func change(
        _ status: Int,
        _ body: String,
        _ change: SubscriptionChange = .subscribe,
        retryAfter: String? = nil
    ) -> TopicReading {
        V1TopicResponseReader.change(UpstreamResponse(status, body, retryAfter: retryAfter), change, now: 0)
    }

    @Test(
        "A 200 with an object or an empty body is a success",
        arguments: ["{}", "", #"{"topic_name":"news","create_time":"2026-01-15T01:30:15.01Z"}"#]
    )
    func done(body: String) {
        for change in SubscriptionChange.allCases {
            #expect(self.change(200, body, change) == TopicReading(.changed([.done]), upstreamCode: "200"))
        }
    }

    @Test("A 200 with any other body is a protocol error", arguments: ["<html>", "[]", "true", "{", "{}{}"])
    func notDone(body: String) {
        #expect(self.change(200, body) == TopicReading(rejected: .upstreamProtocol, upstreamCode: "200"))
    }

    @Test(
        "A 409 is a success for subscribe but not for unsubscribe",
        arguments: [#"{"error":{"code":409,"status":"ALREADY_EXISTS","message":"x"}}"#, "", "<html>"]
    )
    func twice(body: String) {
        #expect(self.change(409, body).answer == .changed([.done]))
        #expect(self.change(409, body, .unsubscribe).rejection?.code == .upstreamUnavailable)
    }

    @Test("A 409 with ABORTED gives upstreamUnavailable")
    func aborted() {
        let reading = self.change(409, #"{"error":{"code":409,"status":"ABORTED"}}"#)
        #expect(reading.rejection?.code == .upstreamUnavailable)
    }

    @Test(
        "An FCM error code decides the result",
        arguments: [
            (404, "UNREGISTERED", OutcomeCode.unregistered, TopicReading.Signal.none),
            (403, "SENDER_ID_MISMATCH", .senderMismatch, .none),
            (429, "QUOTA_EXCEEDED", .tenantRateExceeded, .holdsForAll),
            (503, "UNAVAILABLE", .upstreamUnavailable, .none), (500, "INTERNAL", .upstreamInternal, .none),
            (500, "UNSPECIFIED_ERROR", .upstreamInternal, .none), (400, "INVALID_ARGUMENT", .invalidField, .none),
        ]
    )
    func codes(status: Int, name: String, code: OutcomeCode, signal: TopicReading.Signal) {
        let reading = self.change(status, #"{"error":{"status":"X","details":[{\#(Self.fcmError):"\#(name)"}]}}"#)
        #expect(reading.rejection?.code == code)
        #expect(reading.signal == signal)
        #expect(reading.upstreamCode == name)
    }

    @Test(
        "Without an FCM error code, the status decides the result",
        arguments: [
            (
                401, #"{"error":{"status":"UNAUTHENTICATED"}}"#, OutcomeCode.upstreamCredentials,
                TopicReading.Signal.tokenRefused
            ),
            (403, #"{"error":{"status":"PERMISSION_DENIED"}}"#, .upstreamCredentials, .holdsForAll),
            (404, #"{"error":{"status":"NOT_FOUND"}}"#, .upstreamCredentials, .apiMissing),
            (404, "<html>", .upstreamCredentials, .apiMissing), (404, "", .upstreamCredentials, .apiMissing),
            (429, "", .tenantRateExceeded, .holdsForAll),
            (429, #"{"error":{"status":"RESOURCE_EXHAUSTED"}}"#, .tenantRateExceeded, .holdsForAll),
            (500, "", .upstreamInternal, .none), (502, "<html>", .upstreamUnavailable, .none),
            (503, "", .upstreamUnavailable, .none), (302, "", .upstreamProtocol, .none),
        ]
    )
    func statuses(status: Int, body: String, code: OutcomeCode, signal: TopicReading.Signal) {
        let reading = self.change(status, body)
        #expect(reading.rejection?.code == code)
        #expect(reading.signal == signal)
        #expect(reading.upstreamCode == String(status))
    }

    @Test(
        "An invalid argument is classified by its message and violations",
        arguments: [
            (#""message":"The registration token is not a valid FCM registration token""#, OutcomeCode.invalidToken),
            (#""message":"Request contains an invalid argument.""#, .invalidField),
            (#""message":"Invalid topic name provided""#, .invalidField),
            (
                #""message":"x","details":[{"@type":"t/google.rpc.BadRequest","fieldViolations":[{"field":"registration"}]}]"#,
                .invalidToken
            ),
            (#""message":"The registration follows too many topics.""#, .tooManyTopics),
        ]
    )
    func argument(members: String, code: OutcomeCode) {
        let body = #"{"error":{"code":400,"status":"INVALID_ARGUMENT",\#(members)}}"#
        #expect(self.change(400, body).rejection?.code == code)
    }

    @Test("A delay comes from the header, else from RetryInfo, else it is a minute for 429")
    func delay() {
        let info = #"{"@type":"t/google.rpc.RetryInfo","retryDelay":"9.2s"}"#
        let body = #"{"error":{"status":"RESOURCE_EXHAUSTED","details":[\#(info)]}}"#
        #expect(self.change(429, body).rejection?.retryAfter == 10)
        #expect(self.change(429, body, retryAfter: "3").rejection?.retryAfter == 3)
        #expect(self.change(429, "").rejection?.retryAfter == 60)
        #expect(self.change(503, "", retryAfter: "3").rejection?.retryAfter == 3)
        #expect(self.change(403, "", retryAfter: "3").rejection?.retryAfter == nil)
    }

    @Test(
        "A list is read in either spelling, and a missing topic is taken from the name",
        arguments: [
            """
            {"topicSubscriptions":[{"name":"x","topicName":"b","createTime":"2026-01-15T01:30:15Z"},
             {"topicName":"a"}],"nextPageToken":"next"}
            """,
            """
            {"topic_subscriptions":[{"topic_name":"b","create_time":"2026-01-15T01:30:15Z"},
             {"name":"projects/p/registrations/t/topicSubscriptions/a"}],"next_page_token":"next"}
            """,
        ]
    )
    func list(body: String) {
        let info = RegistrationInfo(subscriptions: [
            TopicSubscription(topic: "a"), TopicSubscription(topic: "b", since: "2026-01-15T01:30:15Z"),
        ])
        #expect(
            V1TopicResponseReader.list(UpstreamResponse(200, body), now: 0)
                == TopicReading(.registration(info, nextPage: "next"), upstreamCode: "200")
        )
    }

    @Test("An empty list is read as empty", arguments: ["{}", #"{"topicSubscriptions":[]}"#, #"{"nextPageToken":""}"#])
    func none(body: String) {
        let reading = V1TopicResponseReader.list(UpstreamResponse(200, body), now: 0)
        #expect(reading.answer == .registration(RegistrationInfo(), nextPage: nil))
    }

    @Test(
        "An unreadable list is a protocol error",
        arguments: [
            "", "<html>", "[]", #"{"topicSubscriptions":{}}"#, #"{"topicSubscriptions":[1]}"#,
            #"{"topicSubscriptions":[{"topicName":"\#(String(repeating: "x", count: 4_097))"}]}"#,
            #"{"topicSubscriptions":[{"topicName":"a b"}]}"#, #"{"nextPageToken":"a b"}"#,
            #"{"nextPageToken":"\#(String(repeating: "x", count: 4_097))"}"#,
            #"{"topicSubscriptions":[{}]}"#, #"{"topicSubscriptions":[{"name":"projects/p/registrations/t"}]}"#,
        ]
    )
    func badList(body: String) {
        let reading = V1TopicResponseReader.list(UpstreamResponse(200, body), now: 0)
        #expect(reading == TopicReading(rejected: .upstreamProtocol, upstreamCode: "200"))
    }

    @Test("A refused list has a signal or a code")
    func refusedList() {
        let reading = V1TopicResponseReader.list(UpstreamResponse(404, "<html>"), now: 0)
        #expect(reading.signal == .apiMissing)
        let dead = #"{"error":{"status":"NOT_FOUND","details":[{\#(Self.fcmError):"UNREGISTERED"}]}}"#
        #expect(V1TopicResponseReader.list(UpstreamResponse(404, dead), now: 0).rejection?.code == .unregistered)
    }
}

struct TopicRequestTests {
    private func topic(_ name: String) throws -> TopicName { try #require(TopicName(name)) }

    @Test("A batch names the topic with its prefix and the devices in order")
    func batch() throws {
        let add = InstanceIDRequest.batch(.subscribe, ["t1", "a\"b", "t1"], try self.topic("news"))
        #expect(add.method == .post)
        #expect(add.path == "/iid/v1:batchAdd")
        #expect(String(buffer: add.body) == #"{"to":"/topics/news","registration_tokens":["t1","a\"b","t1"]}"#)
        let remove = InstanceIDRequest.batch(.unsubscribe, ["t1"], try self.topic("a%b"))
        #expect(remove.path == "/iid/v1:batchRemove")
        #expect(String(buffer: remove.body) == #"{"to":"/topics/a%b","registration_tokens":["t1"]}"#)
    }

    @Test("A look-up escapes the token")
    func info() {
        let request = InstanceIDRequest.info("a:b/../c?d")
        #expect(request.method == .get)
        #expect(request.path == "/iid/info/a%3Ab%2F..%2Fc%3Fd?details=true")
        #expect(request.body.readableBytes == 0)
    }

    @Test("v1 subscribes by POST with the topic in the query, and unsubscribes by DELETE with the topic in the path")
    func v1() throws {
        let requests = V1TopicRequest(project: "example.com:demo")
        let parent = "/v1/projects/example.com%3Ademo/registrations/a%3Ab%2Fc/topicSubscriptions"
        let create = requests.change(.subscribe, "a:b/c", try self.topic("100%~x"))
        #expect(create.method == .post)
        #expect(create.path == parent + "?topic_name=100%25~x")
        #expect(String(buffer: create.body) == "{}")
        let delete = requests.change(.unsubscribe, "a:b/c", try self.topic("100%~x"))
        #expect(delete.method == .delete)
        #expect(delete.path == parent + "/100%25~x?allow_missing=true")
        #expect(delete.body.readableBytes == 0)
        #expect(requests.list("a:b/c").path == parent + "?page_size=300")
        #expect(requests.list("a:b/c", page: "x=&").path == parent + "?page_size=300&page_token=x%3D%26")
    }
}
