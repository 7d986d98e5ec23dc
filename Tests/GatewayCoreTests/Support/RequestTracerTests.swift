import GatewayTestKit
import Testing

@testable import GatewayCore

struct RequestTracerTests {
    private static let arrival = Uptime.now

    private static func trace(_ tracer: RequestTracer, _ parent: String?, _ state: String? = "a=1") -> RequestTrace? {
        tracer.trace(parent: parent, state: state, arrival: Self.arrival, time: .sample)
    }

    private static func end(
        _ trace: RequestTrace?,
        _ status: Int,
        code: String? = nil,
        method: String = "POST",
        route: String? = "/v1/x"
    ) {
        guard let trace else { return }
        let (id, address, duration) = ("request-1", "192.0.2.1", Duration.milliseconds(5))
        trace.end(
            method,
            at: route,
            scheme: "http",
            status: status,
            code: code,
            tenant: "acme",
            requestID: id,
            remoteAddress: address,
            after: duration
        )
    }

    private static func call(_ trace: RequestTrace) -> UpstreamSpan? {
        let start = Self.arrival + .milliseconds(1)
        let server = (scheme: "https", host: "fcm.example", port: 443)
        return trace.begin("POST", at: "/fcm/send", of: server, tenant: "acme", start: start)
    }

    // MARK: Recorded traces

    @Test(
        "A caller's trace is recorded if it is sampled, a new one by the ratio, and none without a recorder",
        arguments: [
            ("01", nil, false), ("00", nil, false), ("", nil, nil), ("nonsense", nil, nil), ("01", 0, true),
            ("00", 0, false), ("", 0, nil), ("nonsense", 0, nil), ("01", 1, true), ("00", 1, false), ("", 1, true),
            ("nonsense", 1, true),
        ] as [(String, Double?, Bool?)]
    )
    func rule(flags: String, ratio: Double?, isRecorded: Bool?) {
        let log = SpanLog()
        let parent = flags.isEmpty ? nil : "00-\(RequestTrace.sampleID)-00f067aa0ba902b7-\(flags)"
        let trace = Self.trace(ratio.map { log.tracer(sampling: $0) } ?? RequestTracer(), parent)
        #expect(trace?.isRecorded == isRecorded)
        Self.end(trace, 200)
        #expect(log.spans.count == (isRecorded == true ? 1 : 0))
        guard let trace, let parent else { return }
        #expect((trace.traceID == RequestTrace.sampleID) == (flags.utf8.count == 2))
        guard isRecorded == false else { return }
        #expect(trace.spanID == "00f067aa0ba902b7" && Self.call(trace) == nil)
        #expect(trace.fields == [TraceField(.parent, parent), TraceField(.state, "a=1")])
    }

    @Test(
        "A new trace is sampled by the lower 56 bits of its id",
        arguments: [
            (0, UInt64.max, false), (0, 0, false), (1, 0, true), (1, .max, true),
            (0.25, 0x00C0_0000_0000_0000, true), (0.25, 0x00BF_FFFF_FFFF_FFFF, false),
            // The upper 8 bits are ignored.
            (0.25, 0xFFBF_FFFF_FFFF_FFFF, false), (0.25, 0xFFC0_0000_0000_0000, true),
            (0.5, 0x0080_0000_0000_0000, true), (0.5, 0x007F_FFFF_FFFF_FFFF, false),
            (1e-9, .max, true), (1e-9, 0x00FF_FFFF_0000_0000, false),
        ]
    )
    func sampling(ratio: Double, low: UInt64, isSampled: Bool) {
        #expect(RequestTracer.Recorder(sampling: ratio) { _ in }.samples(low) == isSampled)
    }

    @Test("A new trace has ids of its own, and neither parent nor state")
    func newTraces() throws {
        let log = SpanLog()
        for _ in 1...2 { Self.end(Self.trace(log.tracer(), nil), 200) }
        #expect(Set(log.spans.map(\.traceID)).count == 2 && Set(log.spans.map(\.id)).count == 2)
        for span in log.spans {
            #expect(span.parentID == nil && span.state == nil && !span.isParentRemote)
            #expect(TraceParent("00-\(span.traceID)-\(span.id)-01") != nil)
        }
    }

    @Test("A malformed tracestate does not drop the traceparent, and without propagation no field is sent")
    func fields() throws {
        for tracer in [RequestTracer(), SpanLog().tracer()] {
            let trace = try #require(Self.trace(tracer, RequestTrace.sampleParent, "A=1"))
            #expect((Self.call(trace)?.fields ?? trace.fields).map(\.name) == [.parent])
        }
        for tracer in [RequestTracer(propagates: false), SpanLog().tracer(propagates: false)] {
            let trace = try #require(Self.trace(tracer, RequestTrace.sampleParent))
            #expect((Self.call(trace)?.fields ?? trace.fields).isEmpty && trace.traceID == RequestTrace.sampleID)
        }
    }

    // MARK: Spans

    @Test("A request's span continues the caller's trace and is the parent of its calls' spans")
    func nested() throws {
        let log = SpanLog()
        let trace = try #require(Self.trace(log.tracer(), RequestTrace.sampleParent))
        let call = try #require(Self.call(trace))
        call.answered(status: 200, at: Self.arrival + .milliseconds(4))
        Self.end(trace, 200)
        let (client, server) = (try #require(log.spans.first), try #require(log.spans.last))
        #expect(server.kind == .server && client.kind == .client)
        #expect(log.spans.map(\.traceID) == [RequestTrace.sampleID, RequestTrace.sampleID])
        #expect(server.parentID == "00f067aa0ba902b7" && server.isParentRemote && server.state == "a=1")
        #expect(client.parentID == server.id && server.id == trace.spanID && !client.isParentRemote)
        #expect(server.name == "POST /v1/x" && client.name == "POST /fcm/send")
        let start = Timestamp.sample.microseconds * 1_000
        #expect([server.start, server.end] == [start, start + 5_000_000])
        #expect([client.start, client.end] == [start + 1_000_000, start + 4_000_000])
        #expect(
            server.attributes.map { "\($0.name)=\($0.value)" } == [
                "http.request.method=text(\"POST\")", "url.scheme=text(\"http\")", "http.route=text(\"/v1/x\")",
                "http.response.status_code=number(200)", "client.address=text(\"192.0.2.1\")",
                "fcmgw.request_id=text(\"request-1\")", "fcmgw.tenant=text(\"acme\")",
            ]
        )
        #expect(
            client.attributes.map { "\($0.name)=\($0.value)" } == [
                "http.request.method=text(\"POST\")", "url.scheme=text(\"https\")",
                "server.address=text(\"fcm.example\")", "server.port=number(443)", "fcmgw.tenant=text(\"acme\")",
                "http.response.status_code=number(200)",
            ]
        )
        #expect(!server.isError && !client.isError)
        #expect(call.fields.map(\.value) == ["00-\(RequestTrace.sampleID)-\(client.id)-01", "a=1"])
    }

    @Test(
        "A status of 500 or above marks the span as an error, and a lower one does not",
        arguments: [200, 401, 429, 500, 503]
    )
    func status(status: Int) throws {
        let log = SpanLog()
        Self.end(.recorded(in: log), status, code: "overloaded")
        let span = try #require(log.spans.first)
        #expect(span.isError == (status >= 500))
        #expect(span["error.type"] == (status >= 500 ? .text("overloaded") : nil))
        #expect(span["fcmgw.code"] == .text("overloaded"))
    }

    @Test(
        "A span is named after the method, if HTTP defines it, and the route, if there is one",
        arguments: [
            ("POST", "/v1/x", "POST /v1/x", "POST"), ("TRACE", "/v1/x", "TRACE /v1/x", "TRACE"),
            ("CONNECT", nil, "CONNECT", "CONNECT"), ("GET", nil, "GET", "GET"),
            ("CANARY", "/v1/x", "HTTP /v1/x", "_OTHER"), ("get", nil, "HTTP", "_OTHER"), ("", nil, "HTTP", "_OTHER"),
        ]
    )
    func names(method: String, route: String?, name: String, attribute: String) throws {
        let log = SpanLog()
        Self.end(.recorded(in: log), 405, method: method, route: route)
        let span = try #require(log.spans.first)
        #expect(span.name == name && span["http.request.method"] == .text(attribute))
        #expect(span["http.route"] == route.map { .text($0) } && !"\(span)".contains("CANARY"))
    }
}
