import FCMModel
import NIOCore
import Testing

struct InstanceIDResponseReaderTests {
    private static let now = 1_700_000_000

    private func response(_ status: Int, _ body: String, retryAfter: String? = nil) -> V1Response {
        V1Response(status: status, retryAfter: retryAfter, body: ByteBuffer(string: body))
    }

    private func batch(_ status: Int, _ body: String, count: Int = 1, retryAfter: String? = nil) -> TopicReading {
        InstanceIDResponseReader.batch(
            self.response(status, body, retryAfter: retryAfter),
            count: count,
            now: Self.now
        )
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
        "Each error has its meaning; an unknown one is no death",
        arguments: [
            ("NOT_FOUND", OutcomeCode.unregistered), ("INVALID_ARGUMENT", .invalidToken),
            ("PERMISSION_DENIED", .senderMismatch), ("TOO_MANY_TOPICS", .tooManyTopics),
            ("RESOURCE_EXHAUSTED", .tenantRateExceeded), ("DEADLINE_EXCEEDED", .upstreamUnavailable),
            ("UNAVAILABLE", .upstreamUnavailable), ("INTERNAL", .upstreamInternal), ("UNKNOWN", .upstreamInternal),
            ("not_found", .upstreamProtocol), ("", .upstreamProtocol), ("SOMETHING_NEW", .upstreamProtocol),
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
        "A list of another length, or no list, tells nothing of any device",
        arguments: [
            #"{"results":[{}]}"#, #"{"results":[{},{},{}]}"#, #"{"results":[]}"#, #"{"results":{}}"#, "{}", "[]",
            "null", "",
            "<html></html>", #"{"results":[{},{}"#, #"{"results":[{},{}],"results":[{},{}]}"#, "\u{FEFF}{}",
        ]
    )
    func unreadable(body: String) {
        #expect(
            self.batch(200, body, count: 2) == TopicReading(rejected: .upstreamProtocol, upstreamCode: "200")
        )
    }

    @Test(
        "An entry that is no object, or an error that is no text, concerns its device alone",
        arguments: ["1", "null", "[]", #""NOT_FOUND""#, #"{"error":1}"#, #"{"error":{"code":5}}"#]
    )
    func oddEntry(entry: String) {
        let reading = self.batch(200, #"{"results":[{},\#(entry)]}"#, count: 2)
        #expect(reading.answer == .changed([.done, .rejected(.upstreamProtocol)]))
    }

    @Test(
        "A request that was refused as a whole",
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
        #expect(
            self.batch(status, body) == TopicReading(rejected: code, signal: signal, upstreamCode: String(status))
        )
    }

    @Test("A quota is FCM's, with the delay that it names or a minute", arguments: [(nil, 60), ("7", 7), ("soon", 60)])
    func quota(header: String?, delay: Int) {
        let reading = self.batch(429, #"{"error":"RESOURCE_EXHAUSTED"}"#, retryAfter: header)
        #expect(
            reading.answer
                == .rejected(Rejection(code: .tenantRateExceeded, retryAfter: delay, limitedBy: .fcm))
        )
        #expect(reading.signal == .holdsForAll)
    }

    @Test("What is known of a device is read, with its topics in order")
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
        let reading = InstanceIDResponseReader.info(self.response(200, body), now: Self.now)
        #expect(reading == TopicReading(.registration(expected, nextPage: nil), upstreamCode: "200"))
        #expect(expected.subscriptions.map(\.topic) == ["Z", "a", "news"])
    }

    @Test(
        "A device without subscriptions has none",
        arguments: ["{}", #"{"rel":{}}"#, #"{"rel":{"topics":{}}}"#, #"{"rel":7}"#]
    )
    func noTopics(body: String) {
        let reading = InstanceIDResponseReader.info(self.response(200, body), now: Self.now)
        #expect(reading.answer == .registration(RegistrationInfo(), nextPage: nil))
    }

    @Test(
        "Texts beyond their bounds are not handed on",
        arguments: [
            #"{"platform":"\#(String(repeating: "x", count: 513))"}"#,
            #"{"application":"\#(String(repeating: "x", count: 513))"}"#,
            #"{"rel":{"topics":{"\#(String(repeating: "x", count: 4_097))":{}}}}"#,
            #"{"rel":{"topics":{"a b":{}}}}"#, #"{"rel":{"topics":{"":{}}}}"#,
            #"{"rel":{"topics":{"a":{"addDate":"\#(String(repeating: "x", count: 513))"}}}}"#,
        ]
    )
    func foreignTexts(body: String) {
        let reading = InstanceIDResponseReader.info(self.response(200, body), now: Self.now)
        #expect(reading == TopicReading(rejected: .upstreamProtocol, upstreamCode: "200"))
    }

    @Test("As many topics as a device can follow are read")
    func manyTopics() {
        let topics = (0..<2_000).map { #""topic-\#($0)":{"addDate":"2025-03-14"}"# }.joined(separator: ",")
        let reading = InstanceIDResponseReader.info(
            self.response(200, #"{"rel":{"topics":{\#(topics)}}}"#),
            now: Self.now
        )
        guard case .registration(let info, _) = reading.answer else {
            Issue.record("unread: \(reading)")
            return
        }
        #expect(info.subscriptions.count == 2_000)
    }

    @Test(
        "Why nothing is known of a device",
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
        let reading = InstanceIDResponseReader.info(self.response(status, body), now: Self.now)
        guard case .rejected(let rejection) = reading.answer else {
            Issue.record("no rejection: \(reading)")
            return
        }
        #expect(rejection.code == code)
    }
}
