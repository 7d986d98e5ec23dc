import GatewayCore
import GatewayTestKit
import Testing
import Tracing

struct RequestTracerTests {
    private static let attempt = UpstreamAttempt(
        method: "POST",
        route: "/fcm/send",
        host: "fcm.example",
        port: 443,
        tenant: "acme"
    )

    private static func begin(_ tracer: RequestTracer, _ fields: [String: String]) -> RequestTrace? {
        tracer.begin("POST") { fields[$0] }
    }

    private static func ending(
        status: Int,
        code: String? = nil,
        method: String = "POST",
        route: String? = "/v1/x"
    ) -> RequestTrace.Ending {
        RequestTrace.Ending(
            route: route,
            method: method,
            status: status,
            code: code,
            tenant: "acme",
            requestID: "request-1",
            remoteAddress: "192.0.2.1"
        )
    }

    // MARK: Without a tracer

    @Test("Without a tracer a caller's trace is handed on as it came, and nothing else is told of")
    func propagated() throws {
        let tracer = RequestTracer()
        let parent = RequestTrace.sampleParent
        let trace = try #require(Self.begin(tracer, ["traceparent": parent, "tracestate": "a=1, b=2"]))
        #expect(trace.traceID == RequestTrace.sampleID)
        #expect(trace.spanID == "00f067aa0ba902b7")
        let span = trace.begin(Self.attempt)
        #expect(span.fields == [TraceField(.parent, parent), TraceField(.state, "a=1,b=2")])
        #expect(Self.begin(tracer, [:]) == nil)
        #expect(Self.begin(tracer, ["tracestate": "a=1"]) == nil)
        #expect(Self.begin(tracer, ["traceparent": "nonsense", "tracestate": "a=1"]) == nil)
    }

    @Test("A trace's state that is malformed does not take the trace with it")
    func badState() throws {
        let fields = ["traceparent": RequestTrace.sampleParent, "tracestate": "A=1"]
        let trace = try #require(Self.begin(RequestTracer(), fields))
        #expect(trace.begin(Self.attempt).fields.map(\.name) == [.parent])
    }

    @Test("Where it is not wanted, servers are told nothing", arguments: [true, false])
    func unwanted(isRecorded: Bool) throws {
        let tracer = RequestTracer(isRecorded ? RecordingTracer() : nil, propagates: false)
        let trace = try #require(Self.begin(tracer, ["traceparent": RequestTrace.sampleParent, "tracestate": "a=1"]))
        #expect(trace.begin(Self.attempt).fields == [])
        #expect(trace.traceID == RequestTrace.sampleID)
    }

    // MARK: With a tracer

    @Test("A request's span continues the caller's trace, and its calls are part of it")
    func nested() throws {
        let tracer = RecordingTracer()
        let fields = ["traceparent": RequestTrace.sampleParent, "tracestate": "a=1"]
        let trace = try #require(Self.begin(RequestTracer(tracer), fields))
        let call = trace.begin(Self.attempt)
        call.answered(status: 200)
        trace.end(Self.ending(status: 200))
        let (server, client) = try #require(
            tracer.spans.first.flatMap { first in tracer.spans.last.map { (first, $0) } }
        )
        #expect(tracer.spans.count == 2)
        #expect(server.kind == .server && client.kind == .client)
        #expect(server.traceID == RequestTrace.sampleID && client.traceID == RequestTrace.sampleID)
        #expect(server.parentID == "00f067aa0ba902b7" && client.parentID == server.id)
        #expect(trace.traceID == RequestTrace.sampleID && trace.spanID == server.id)
        #expect(server.ends == 1 && client.ends == 1)
        #expect(server.name == "POST /v1/x" && client.name == "POST /fcm/send")
        #expect(
            server.attributes == [
                "http.request.method": "POST", "http.route": "/v1/x", "http.response.status_code": "200",
                "client.address": "192.0.2.1", "fcmgw.request_id": "request-1", "fcmgw.tenant": "acme",
            ]
        )
        #expect(
            client.attributes == [
                "http.request.method": "POST", "url.template": "/fcm/send", "server.address": "fcm.example",
                "server.port": "443", "fcmgw.tenant": "acme", "http.response.status_code": "200",
            ]
        )
        #expect(server.status == nil && client.status == nil)
        #expect(
            call.fields == [
                TraceField(.parent, "00-\(RequestTrace.sampleID)-\(client.id)-01"),
                TraceField(.state, "a=1"),
            ]
        )
    }

    @Test(
        "A request without a trace, or with a malformed one, begins a new one",
        arguments: [nil, "nonsense", "00-x-y-01"]
    )
    func newRoot(parent: String?) throws {
        let tracer = RecordingTracer()
        let trace = try #require(RequestTrace.recorded(by: tracer, parent: parent))
        let span = try #require(tracer.spans.first)
        #expect(span.parentID == nil)
        #expect(trace.traceID == span.traceID)
        #expect(span.traceID.utf8.count == 32 && span.state == nil)
    }

    @Test(
        "What the gateway failed is an error, and what the caller did wrong is none",
        arguments: [200, 401, 429, 500, 503]
    )
    func status(status: Int) throws {
        let tracer = RecordingTracer()
        let trace = try #require(RequestTrace.recorded(by: tracer))
        trace.end(Self.ending(status: status, code: "overloaded"))
        let span = try #require(tracer.spans.first)
        #expect((span.status?.code == .error) == (status >= 500))
        #expect(span.attributes["error.type"] == (status >= 500 ? "overloaded" : nil))
        #expect(span.attributes["fcmgw.code"] == "overloaded")
        // The attributes tell why.
        #expect(span.status?.message == nil)
    }

    @Test(
        "A span is named by a method that HTTP has and by the route, as far as there are such",
        arguments: [
            ("POST", "/v1/x", "POST /v1/x", "POST"), ("TRACE", "/v1/x", "TRACE /v1/x", "TRACE"),
            ("CONNECT", nil, "CONNECT", "CONNECT"), ("GET", nil, "GET", "GET"),
            ("CANARY", "/v1/x", "HTTP /v1/x", "_OTHER"), ("get", nil, "HTTP", "_OTHER"), ("", nil, "HTTP", "_OTHER"),
        ]
    )
    func names(method: String, route: String?, name: String, attribute: String) throws {
        let tracer = RecordingTracer()
        let trace = try #require(RequestTracer(tracer).begin(method) { _ in nil })
        #expect(tracer.spans.first?.name == String(name.prefix { $0 != " " }))
        trace.end(Self.ending(status: 405, method: method, route: route))
        let span = try #require(tracer.spans.first)
        #expect(span.name == name)
        #expect(span.attributes["http.request.method"] == attribute)
        #expect(span.attributes["http.route"] == route)
        #expect(!"\(span)".contains("CANARY"))
    }

    @Test("A call's end says what became of it, and whether it was tried before")
    func calls() throws {
        let tracer = RecordingTracer()
        let trace = try #require(RequestTrace.recorded(by: tracer))
        var attempt = Self.attempt
        trace.begin(attempt).failed("connectFailed")
        attempt.repeats = 1
        trace.begin(attempt).answered(status: 503)
        attempt.repeats = 2
        trace.begin(attempt).answered(status: 200)
        let calls = tracer.spans.dropFirst()
        #expect(calls.map(\.ends) == [1, 1, 1])
        #expect(calls.map { $0.attributes["http.request.resend_count"] } == [nil, "1", "2"])
        #expect(calls.map { $0.attributes["error.type"] } == ["connectFailed", "503", nil])
        #expect(calls.map { $0.status?.code == .error } == [true, true, false])
        #expect(calls.map(\.errors) == [1, 0, 0])
    }

    @Test("A trace that is not sampled is handed on as such, and nothing is gathered for it")
    func unsampled() throws {
        let tracer = RecordingTracer()
        let parent = "00-\(RequestTrace.sampleID)-00f067aa0ba902b7-00"
        let trace = try #require(RequestTrace.recorded(by: tracer, parent: parent))
        let call = trace.begin(Self.attempt)
        call.failed("connectFailed")
        trace.end(Self.ending(status: 500))
        #expect(call.fields.map(\.value) == ["00-\(RequestTrace.sampleID)-\(tracer.spans[1].id)-00"])
        #expect(tracer.spans.map(\.ends) == [1, 1])
        #expect(tracer.spans.allSatisfy { $0.attributes.isEmpty && $0.status == nil && $0.errors == 0 })
    }

    @Test("A step is a span of its own within the request's")
    func step() async throws {
        let tracer = RecordingTracer()
        let trace = try #require(RequestTrace.recorded(by: tracer))
        func failure(_ value: Int) -> String? { value < 0 ? "negative" : nil }
        for expected in [42, -1] {
            let value = await trace.step("audit commit", failure: failure) {
                #expect(tracer.spans.last?.ends == 0)
                return expected
            }
            #expect(value == expected)
            let span = try #require(tracer.spans.last)
            #expect(span.name == "audit commit" && span.kind == .internal && span.ends == 1)
            #expect(span.parentID == tracer.spans.first?.id)
            #expect((span.status?.code == .error) == (expected < 0))
            #expect(span.attributes["error.type"] == failure(expected))
            #expect(span.errors == (expected < 0 ? 1 : 0))
        }
        #expect(await RequestTrace.sample?.step("audit commit", failure: failure) { 42 } == 42)
    }
}
