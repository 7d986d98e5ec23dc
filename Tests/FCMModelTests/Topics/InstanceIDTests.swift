import FCMModel
import NIOCore
import Testing

@Suite("InstanceIDBatch and InstanceIDReplyWriter")
struct InstanceIDFacadeTests {
    private func code(_ body: String) -> OutcomeCode? {
        do throws(Refusal) {
            _ = try InstanceIDBatch(parsing: ByteBuffer(string: body))
            return nil
        } catch {
            #expect(error.detail?.isEmpty == false)
            return error.code
        }
    }

    @Test("A batch is read, and unknown members are ignored")
    func batch() throws {
        let body = #"{"extra":1,"to":"/topics/a%b","registration_tokens":["t2","","t1","t2"]}"#
        let batch = try InstanceIDBatch(parsing: ByteBuffer(string: body))
        #expect(batch.topic.text == "a%b")
        #expect(batch.tokens == ["t2", "", "t1", "t2"])
    }

    @Test(
        "An invalid batch is refused with a code",
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

    @Test("Results are empty objects or error names")
    func results() {
        let reply = InstanceIDReplyWriter.reply(to: [
            .done, .rejected(.unregistered), .rejected(.invalidToken), .rejected(.tooManyTopics),
        ])
        #expect(reply.status == 200)
        #expect(
            String(buffer: reply.body)
                == #"{"results":[{},{"error":"NOT_FOUND"},{"error":"INVALID_ARGUMENT"},{"error":"TOO_MANY_TOPICS"}]}"#
        )
    }

    @Test("The longest delay is sent only if no device has succeeded")
    func delay() {
        let late = SubscriptionOutcome.rejected(Rejection(code: .tenantRateExceeded, retryAfter: 7))
        let later = SubscriptionOutcome.rejected(Rejection(code: .tenantRateExceeded, retryAfter: 9))
        #expect(InstanceIDReplyWriter.reply(to: [late, later, late]).retryAfter == 9)
        #expect(InstanceIDReplyWriter.reply(to: [late, .done, later]).retryAfter == nil)
        #expect(InstanceIDReplyWriter.reply(to: [.rejected(.unregistered)]).retryAfter == nil)
    }

    @Test("Only unregistered is NOT_FOUND, and only the caller's own key is UNAUTHENTICATED")
    func names() {
        for code in OutcomeCode.allCases {
            #expect((code.instanceIDErrorName == .notFound) == (code == .unregistered), "\(code)")
            let isCaller = code == .unauthenticated || code == .forbidden
            #expect((code.instanceIDErrorName == .unauthenticated) == isCaller, "\(code)")
        }
    }

    @Test(
        "A refused request gets the status and name of its code",
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
        let reply = InstanceIDReplyWriter.reply(refusing: Refusal(code))
        #expect(reply.status == status)
        #expect(String(buffer: reply.body) == #"{"error":"\#(name)"}"#)
        #expect(reply.retryAfter == retryAfter)
    }

    @Test("A device's information is written in the API's form")
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
            String(buffer: InstanceIDReplyWriter.reply(with: info, includingTopics: true).body)
                == #"{"application":"com.example","platform":"IOS","rel":{"topics":{"a":{},"b":{"addDate":"2026-01-15"},"c":{"addDate":"2025-03-14"}}}}"#
        )
        #expect(
            String(buffer: InstanceIDReplyWriter.reply(with: info, includingTopics: false).body)
                == #"{"application":"com.example","platform":"IOS"}"#
        )
        let nothing = InstanceIDReplyWriter.reply(with: RegistrationInfo(), includingTopics: true)
        #expect(String(buffer: nothing.body) == "{}")
    }

    @Test("Subscriptions are written in v1's form")
    func v1() throws {
        let topic = try #require(TopicName("a%b"))
        let writer = V1ReplyWriter(project: "p")
        #expect(
            String(buffer: writer.reply(subscribing: "t", to: topic).body)
                == #"{"name":"projects/p/registrations/t/topicSubscriptions/a%b","topicName":"a%b"}"#
        )
        #expect(String(buffer: V1ReplyWriter.unsubscribed.body) == "{}")
        let list = [
            TopicSubscription(topic: "a", since: "2025-03-14"),
            TopicSubscription(topic: "b", since: "2026-01-15T01:30:15Z"),
        ]
        #expect(
            String(buffer: writer.reply(listing: list, of: "t", nextPage: "n").body)
                == #"{"topicSubscriptions":[{"name":"projects/p/registrations/t/topicSubscriptions/a","topicName":"a","createTime":"2025-03-14T00:00:00Z"},{"name":"projects/p/registrations/t/topicSubscriptions/b","topicName":"b","createTime":"2026-01-15T01:30:15Z"}],"nextPageToken":"n"}"#
        )
        #expect(V1ReplyWriter.reply(refusingSubscription: Rejection(code: .unregistered)).status == 404)
        #expect(V1ReplyWriter.reply(refusingSubscription: Rejection(code: .invalidToken)).status == 400)
        #expect(V1ReplyWriter.reply(refusingSubscription: Rejection(code: .tooManyTopics)).status == 400)
        #expect(V1ReplyWriter.reply(to: Refusal(.methodNotAllowed)).status == 405)
    }
}

struct InstanceIDResponseReaderTests {
    private static let now = 1_700_000_000

    private func batch(_ status: Int, _ body: String, count: Int = 1, retryAfter: String? = nil) -> TopicReading {
        let response = UpstreamResponse(status, body, retryAfter: retryAfter)
        return InstanceIDResponseReader.batch(response, count: count, now: Self.now)
    }

    @Test("Results are read in the order of the devices")
    func results() {
        let body = #"{"results":[{},{"error":"NOT_FOUND"},{"error":null},{"future":1},{"error":"TOO_MANY_TOPICS"}]}"#
        #expect(
            self.batch(200, body, count: 5)
                == TopicReading(
                    .changed([.done, .rejected(.unregistered), .done, .done, .rejected(.tooManyTopics)]),
                    upstreamCode: "NOT_FOUND"
                )
        )
    }

    @Test(
        "Each error has its code, and an unknown one is a protocol error",
        arguments: [
            ("NOT_FOUND", OutcomeCode.unregistered), ("INVALID_ARGUMENT", .invalidToken),
            ("PERMISSION_DENIED", .senderMismatch), ("TOO_MANY_TOPICS", .tooManyTopics),
            ("RESOURCE_EXHAUSTED", .tenantRateExceeded), ("DEADLINE_EXCEEDED", .upstreamUnavailable),
            ("UNAVAILABLE", .upstreamUnavailable), ("INTERNAL", .upstreamInternal), ("UNKNOWN", .upstreamInternal),
            ("not_found", .upstreamProtocol), ("", .upstreamProtocol), ("SOMETHING_NEW", .upstreamProtocol),
            // A status of v1 that this API does not have.
            ("ABORTED", .upstreamProtocol),
        ]
    )
    func errors(name: String, code: OutcomeCode) {
        guard case .changed(let outcomes) = self.batch(200, #"{"results":[{"error":"\#(name)"}]}"#).answer,
            case .rejected(let rejection)? = outcomes.first
        else {
            Issue.record("no rejection")
            return
        }
        #expect(rejection.code == code)
        #expect(rejection.limitedBy == (code == .tenantRateExceeded ? .fcm : nil))
    }

    @Test(
        "Results of another length or form are a protocol error",
        arguments: [
            #"{"results":[{}]}"#, #"{"results":[{},{},{}]}"#, #"{"results":[]}"#, #"{"results":{}}"#, "{}", "[]",
            "null", "",
            "<html></html>", #"{"results":[{},{}"#, #"{"results":[{},{}],"results":[{},{}]}"#, "\u{FEFF}{}",
        ]
    )
    func unreadable(body: String) {
        #expect(self.batch(200, body, count: 2) == TopicReading(rejected: .upstreamProtocol, upstreamCode: "200"))
    }

    @Test(
        "A malformed entry affects its own device only",
        arguments: ["1", "null", "[]", #""NOT_FOUND""#, #"{"error":1}"#, #"{"error":{"code":5}}"#]
    )
    func oddEntry(entry: String) {
        let reading = self.batch(200, #"{"results":[{},\#(entry)]}"#, count: 2)
        #expect(reading.answer == .changed([.done, .rejected(.upstreamProtocol)]))
    }

    @Test(
        "A refused request has a code and a signal",
        arguments: [
            (400, #"{"error":"INVALID_ARGUMENT"}"#, OutcomeCode.invalidField, TopicReading.Signal.none),
            (400, "<html>", .upstreamProtocol, .none),
            (401, #"{"error":"Unauthorized"}"#, .upstreamCredentials, .tokenRefused),
            (401, "", .upstreamCredentials, .tokenRefused),
            (403, #"{"error":"PERMISSION_DENIED"}"#, .upstreamCredentials, .holdsForAll),
            (404, "<html>", .upstreamProtocol, .apiMissing), (404, #"{"error":"x"}"#, .upstreamProtocol, .apiMissing),
            (500, "", .upstreamInternal, .none), (502, "<html>", .upstreamUnavailable, .none),
            (503, #"{"error":"x"}"#, .upstreamUnavailable, .none), (301, "", .upstreamProtocol, .none),
            (418, "", .upstreamProtocol, .none),
        ]
    )
    func refusals(status: Int, body: String, code: OutcomeCode, signal: TopicReading.Signal) {
        #expect(self.batch(status, body) == TopicReading(rejected: code, signal: signal, upstreamCode: String(status)))
    }

    @Test("A 429 is FCM's limit with its delay or a minute", arguments: [(nil, 60), ("7", 7), ("soon", 60)])
    func quota(header: String?, delay: Int) {
        let reading = self.batch(429, #"{"error":"RESOURCE_EXHAUSTED"}"#, retryAfter: header)
        #expect(reading.answer == .rejected(Rejection(code: .tenantRateExceeded, retryAfter: delay, limitedBy: .fcm)))
        #expect(reading.signal == .holdsForAll)
    }

    @Test("A device's information is read, with its topics sorted")
    func info() {
        let body = """
            {"application":"com.example","applicationVersion":"36","authorizedEntity":"123456789012",
             "platform":"ANDROID","rel":{"topics":{"news":{"addDate":"2025-03-14"},"a":{},"Z":{"addDate":5}}}}
            """
        let expected = RegistrationInfo(
            application: "com.example",
            applicationVersion: "36",
            authorizedEntity: "123456789012",
            platform: "ANDROID",
            subscriptions: [
                TopicSubscription(topic: "Z"), TopicSubscription(topic: "a"),
                TopicSubscription(topic: "news", since: "2025-03-14"),
            ]
        )
        let reading = InstanceIDResponseReader.info(UpstreamResponse(200, body), now: Self.now)
        #expect(reading == TopicReading(.registration(expected, nextPage: nil), upstreamCode: "200"))
        #expect(expected.subscriptions.map(\.topic) == ["Z", "a", "news"])
    }

    @Test(
        "Missing or empty topics are an empty list",
        arguments: ["{}", #"{"rel":{}}"#, #"{"rel":{"topics":{}}}"#, #"{"rel":7}"#]
    )
    func noTopics(body: String) {
        let reading = InstanceIDResponseReader.info(UpstreamResponse(200, body), now: Self.now)
        #expect(reading.answer == .registration(RegistrationInfo(), nextPage: nil))
    }

    @Test(
        "Texts beyond their limits are a protocol error",
        arguments: [
            #"{"platform":"\#(String(repeating: "x", count: 513))"}"#,
            #"{"application":"\#(String(repeating: "x", count: 513))"}"#,
            #"{"rel":{"topics":{"\#(String(repeating: "x", count: 4_097))":{}}}}"#,
            #"{"rel":{"topics":{"a b":{}}}}"#, #"{"rel":{"topics":{"":{}}}}"#,
            #"{"rel":{"topics":{"a":{"addDate":"\#(String(repeating: "x", count: 513))"}}}}"#,
        ]
    )
    func foreignTexts(body: String) {
        let reading = InstanceIDResponseReader.info(UpstreamResponse(200, body), now: Self.now)
        #expect(reading == TopicReading(rejected: .upstreamProtocol, upstreamCode: "200"))
    }

    @Test("A device's 2,000 topics are read")
    func manyTopics() {
        let topics = (0..<2_000).map { #""topic-\#($0)":{"addDate":"2025-03-14"}"# }.joined(separator: ",")
        let response = UpstreamResponse(200, #"{"rel":{"topics":{\#(topics)}}}"#)
        let reading = InstanceIDResponseReader.info(response, now: Self.now)
        guard case .registration(let info, _) = reading.answer else {
            Issue.record("unread: \(reading)")
            return
        }
        #expect(info.subscriptions.count == 2_000)
    }

    @Test(
        "A failed look-up has the code of its status and body",
        arguments: [
            (400, #"{"error":"InvalidToken"}"#, OutcomeCode.invalidToken),
            (404, #"{"error":"No information found about this instance id."}"#, .unregistered),
            (404, "<html>", .upstreamProtocol), (404, "", .upstreamProtocol), (404, "{}", .upstreamProtocol),
            (400, "<html>", .upstreamProtocol), (401, "", .upstreamCredentials), (403, "", .upstreamCredentials),
            (200, "", .upstreamProtocol), (200, "[]", .upstreamProtocol), (200, "<html>", .upstreamProtocol),
            (500, "", .upstreamInternal), (503, "", .upstreamUnavailable), (429, "", .tenantRateExceeded),
        ]
    )
    func noInfo(status: Int, body: String, code: OutcomeCode) {
        let reading = InstanceIDResponseReader.info(UpstreamResponse(status, body), now: Self.now)
        #expect(reading.rejection?.code == code)
    }
}
