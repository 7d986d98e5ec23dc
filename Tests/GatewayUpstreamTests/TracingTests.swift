import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import InMemoryLogging
import Logging
import Testing

@testable import GatewayUpstream

@Suite("Tracing of calls", .timeLimit(.minutes(10)))
struct TracingTests {
    private static let key = LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: nil)

    private static func call(
        _ upstream: RawServer,
        _ trace: RequestTrace?,
        timeLeft: Duration = .seconds(60)
    ) throws -> UpstreamCall {
        try .sample(
            credential: LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: upstream.endpoint),
            timeLeft: timeLeft,
            trace: trace
        )
    }

    private static func values(of name: String, in request: String?) -> [String] {
        (request ?? "").split(separator: "\r\n").filter { $0.lowercased().hasPrefix("\(name): ") }
            .map { String($0.dropFirst(name.utf8.count + 2)) }
    }

    private static func value(of name: String, in entry: JournalEntry) -> [String] {
        entry.headers.filter { $0.name.lowercased() == name }.map(\.value)
    }

    // MARK: Legacy

    @Test("A legacy request carries the caller's trace fields, or none without a trace")
    func propagated() async throws {
        try await RawServer.run(.send(WireAnswer.accepted)) { upstream in
            try await FCMClient.run { sender in
                _ = await sender.send(try Self.call(upstream, .sample))
                _ = await sender.send(try Self.call(upstream, nil))
            }
            let requests = upstream.seen.current.requests
            #expect(requests.map { Self.values(of: "traceparent", in: $0) } == [[RequestTrace.sampleParent], []])
            #expect(requests.map { Self.values(of: "tracestate", in: $0) } == [["a=1,b=2"], []])
        }
    }

    @Test("Each attempt has its own span, and its request carries the span's id")
    func attempts() async throws {
        let log = SpanLog()
        let busy = WireAnswer.text("503 Service Unavailable", "")
        try await RawServer.run(script: { $0 <= 2 ? busy : WireAnswer.accepted }) { upstream in
            let trace = try #require(RequestTrace.recorded(in: log))
            try await FCMClient.run { sender in
                let result = await sender.send(try Self.call(upstream, trace))
                #expect(result.upstreamCode == "200")
            }
            let calls = log.spans
            #expect(calls.map(\.name) == Array(repeating: "POST /fcm/send", count: 3))
            #expect(calls.allSatisfy { $0.kind == .client && $0.parentID == trace.spanID && !$0.isParentRemote })
            #expect(calls.map { $0["http.response.status_code"] } == [.number(503), .number(503), .number(200)])
            #expect(calls.map { $0["http.request.resend_count"] } == [nil, .number(1), .number(2)])
            #expect(calls.map(\.isError) == [true, true, false])
            #expect(calls.allSatisfy { $0["server.port"] == .number(upstream.port) })
            #expect(
                calls.allSatisfy { $0["server.address"] == .text("127.0.0.1") && $0["fcmgw.tenant"] == .text("acme") }
            )
            #expect(zip(calls, calls.dropFirst()).allSatisfy { $0.start <= $0.end && $0.end <= $1.start })
            let named = upstream.seen.current.requests.map { Self.values(of: "traceparent", in: $0) }
            #expect(named == calls.map { ["00-\(RequestTrace.sampleID)-\($0.id)-01"] })
        }
    }

    @Test(
        "A failed call ends its span with an error",
        arguments: [RawServer.Reply.nothing, .close, .reset, .send("garbage\r\n\r\n")]
    )
    func failures(reply: RawServer.Reply) async throws {
        let log = SpanLog()
        try await FCMClient.run(against: reply, attemptTimeout: .milliseconds(200)) { sender, upstream in
            let result = await sender.send(try Self.call(upstream, .recorded(in: log)))
            let call = try #require(log.spans.last)
            #expect(call["error.type"] == .text(result.upstreamCode ?? ""))
            #expect(call.isError && call["http.response.status_code"] == nil)
        }
        // Each span ends once.
        #expect(Set(log.spans.map(\.id)).count == log.spans.count)
    }

    // MARK: V1, topics, groups

    @Test("Each call of a v1 list has its own span, and so has the token exchange")
    func list() async throws {
        let log = SpanLog()
        try await V1Fixture.run { fixture in
            let trace = try #require(RequestTrace.recorded(in: log))
            let tokens = (0..<5).map { "canary-\($0)" }
            _ = await fixture.client.send(try fixture.call(to: .tokens(tokens), trace: trace))
            #expect(log.spans.allSatisfy { $0.kind == .client && $0.parentID == trace.spanID && !$0.isError })
            let calls = Array(log.spans.dropFirst())
            #expect(calls.map(\.name) == Array(repeating: "POST /v1/projects/{project}/messages:send", count: 5))
            let sent = fixture.messages.flatMap { Self.value(of: "traceparent", in: $0) }
            #expect(Set(sent) == Set(calls.map { "00-\(RequestTrace.sampleID)-\($0.id)-01" }))
            let exchange = try #require(log.spans.first)
            #expect(exchange.name == "POST {token_uri}" && exchange["http.response.status_code"] == .number(200))
            #expect(exchange["server.address"] == .text("127.0.0.1"))
            // The access token is shared, so its request carries no trace.
            #expect(fixture.tokenRequests.allSatisfy { Self.value(of: "traceparent", in: $0).isEmpty })
            #expect(!"\(log.spans)".contains("canary"))
        }
    }

    private static let subscriptions = "/v1/projects/{project}/registrations/{token}/topicSubscriptions"

    @Test(
        "Topic calls have spans named by path template, without tokens",
        arguments: [
            (TopicAPI.v1, SubscriptionChange.subscribe, "POST", Self.subscriptions),
            (.v1, .unsubscribe, "DELETE", Self.subscriptions + "/{topic}"),
            (.instanceID, .subscribe, "POST", "/iid/v1:batchAdd"),
            (.instanceID, .unsubscribe, "POST", "/iid/v1:batchRemove"),
        ]
    )
    func topics(api: TopicAPI, change: SubscriptionChange, method: String, template: String) async throws {
        let log = SpanLog()
        try await V1Fixture.run(topicAPI: api) { fixture in
            let origin = RequestOrigin(method: "POST", requestID: "r", trace: .recorded(in: log))
            let profile = try fixture.profile()
            _ = await fixture.client.change(
                try .sample(["canary-device"], change, topic: "canary", of: profile, origin: origin)
            )
            _ = await fixture.client.lookUp(try .sample("canary-device", .everything, of: profile, origin: origin))
            let calls = Array(log.spans.dropFirst())
            #expect(calls.map(\.name) == ["\(method) \(template)", "GET /iid/info/{token}"])
            #expect(!"\(calls)".contains("canary"))
            let sent = fixture.topicRequests.flatMap { Self.value(of: "traceparent", in: $0) }
            #expect(sent == calls.map { "00-\(RequestTrace.sampleID)-\($0.id)-01" })
        }
    }

    @Test("A failed token exchange marks its span as an error", arguments: [true, false])
    func failedExchanges(isSend: Bool) async throws {
        let log = SpanLog()
        let trace = try #require(RequestTrace.recorded(in: log))
        let refusal = FaultAction.status(400, body: #"{"error":"invalid_grant"}"#, headers: [])
        try await V1Fixture.run { fixture in
            fixture.emulator.addFault(Fault(path: "/token", times: 9, action: refusal))
            if isSend {
                _ = await fixture.client.send(try fixture.call(trace: trace))
            } else {
                let origin = RequestOrigin(method: "POST", requestID: "r", trace: trace)
                let call = try RegistrationCall.sample("device", .everything, of: fixture.profile(), origin: origin)
                _ = await fixture.client.lookUp(call)
            }
        }
        #expect(log.spans.map(\.name) == ["POST {token_uri}"])
        #expect(log.spans.map(\.parentID) == [trace.spanID] && log.spans.map(\.isError) == [true])
        #expect(log.spans.map { $0["error.type"] } == [.text("400")])
    }

    @Test("A device group request has a span")
    func groups() async throws {
        let log = SpanLog()
        try await GroupFixture.legacy { fixture in
            let change = GroupChange(.create, name: "canary-group", tokens: ["canary-device"])
            for trace in [RequestTrace.recorded(in: log), .sample] {
                let origin = RequestOrigin(method: "POST", requestID: "request-1", trace: trace)
                await fixture.perform(.change(change), origin: origin)
            }
            let call = try #require(log.spans.last)
            #expect(log.spans.count == 1)
            #expect(call.name == "POST /fcm/notification")
            #expect(!"\(call)".contains("canary"))
            let sent = fixture.requests.flatMap { Self.value(of: "traceparent", in: $0) }
            #expect(sent == ["00-\(RequestTrace.sampleID)-\(call.id)-01", RequestTrace.sampleParent])
        }
    }

    // MARK: Logs

    @Test("A call is logged at debug level with its outcome, tenant and trace, without the message")
    func lines() async throws {
        let logs = InMemoryLogHandler()
        var logger = Logger(label: "test") { _ in logs }
        try await FCMClient.run(defaultEndpoint: "http://127.0.0.1:8085") { client in
            let call = try UpstreamCall.sample(credential: Self.key, trace: .sample)
            let account = try #require(try client.accounts.account(of: call.profile, .legacy))
            let context = CallContext(.legacy, by: account, for: call)
            for level in [Logger.Level.debug, .info] {
                logger.logLevel = level
                AttemptRecorder.Log(logger).ended("503", context, in: .milliseconds(2))
            }
        }
        #expect(logs.entries.count == 1)
        #expect(
            logs.entries.first?.metadata == [
                "outcome": "503", "server": "127.0.0.1:8085", "tenant": "acme",
                "duration_us": .stringConvertible(2_000),
                "request_id": "request-1", "trace_id": "\(RequestTrace.sampleID)", "span_id": "00f067aa0ba902b7",
            ]
        )
    }

    @Test("A missing credential is logged once, with the cause and the remedy")
    func missing() async throws {
        let logs = InMemoryLogHandler()
        let log = AttemptRecorder.Log(Logger(label: "test") { _ in logs })
        try await FCMClient.run(log: log) { sender in
            let call = try UpstreamCall.sample(credential: nil)
            for _ in 1...3 { #expect(await sender.send(call).upstreamCode == "no_credential") }
        }
        #expect(logs.entries.map(\.level) == [.warning])
        let metadata = try #require(logs.entries.first).metadata
        #expect(metadata["cause"] == "no_credential")
        #expect(metadata["tenant"] == "acme")
        #expect(metadata["detail"]?.description.contains("credential put acme legacy") == true)
    }

    @Test("Log lines of topic and group calls carry the request and trace ids")
    func linesOfOthers() async throws {
        let logs = InMemoryLogHandler()
        var logger = Logger(label: "test") { _ in logs }
        logger.logLevel = .debug
        try await V1Fixture.run(log: AttemptRecorder.Log(logger)) { fixture in
            _ = try await fixture.change(["device"])
            _ = try await fixture.look(up: "device", .everything)
        }
        let count = logs.entries.count
        #expect(count >= 2)
        try await GroupFixture.legacy(log: AttemptRecorder.Log(logger)) { fixture in
            var caller = try fixture.caller()
            caller.origin = .sample
            _ = try await fixture.groups().put("g", tokens: ["device"], by: caller)
        }
        #expect(logs.entries.count > count)
        for entry in logs.entries {
            #expect(entry.metadata["request_id"] == "request-1")
            #expect(entry.metadata["trace_id"] == "\(RequestTrace.sampleID)")
            #expect(entry.metadata["span_id"] == "00f067aa0ba902b7")
        }
    }
}
