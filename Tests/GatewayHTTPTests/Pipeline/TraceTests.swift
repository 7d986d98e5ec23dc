import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct TraceTests {
    private static let state = ["traceparent": RequestTrace.sampleParent, "tracestate": "a=1"]

    /// A request and its expected span.
    struct Case: Sendable {
        /// The credential: a tenant's key in either form, the admin token, or none.
        enum Caller: Sendable { case key, legacyKey, admin, nobody }

        var caller: Caller
        var method: HTTPRequest.Method
        var path: String
        var body: String
        var name: String
        var status: Int
        var code: String?
        var tenant: String?

        init(
            _ caller: Caller,
            _ method: HTTPRequest.Method,
            _ path: String,
            _ body: String = "",
            span name: String,
            _ status: Int,
            _ code: String? = nil,
            tenant: String? = "demo"
        ) {
            (self.caller, self.method, self.path, self.body) = (caller, method, path, body)
            (self.name, self.status, self.code, self.tenant) = (name, status, code, tenant)
        }
    }

    private static let messages = "POST /v1/tenants/{tenant}/messages"
    private static let list = "GET /v1/tenants/{tenant}/audit"
    private static let foreign = "/v1/tenants/canary:token/messages"
    private static let v1 = "POST /v1/projects/{project}/messages:send"
    private static let v1Body = #"{"message":{"token":"canary"}}"#
    private static let oneGroup = "/fcm/notification?notification_key_name=canary"
    private static let canary = HTTPRequest.Method("CANARY") ?? .get

    static let cases: [Case] = [
        Case(.key, .post, "/v1/tenants/demo/messages", #"{"token":"canary"}"#, span: Self.messages, 200),
        Case(.key, .post, "/v1/tenants/demo/messages", "{", span: Self.messages, 400, "malformed_json"),
        Case(.nobody, .post, Self.foreign, span: Self.messages, 401, "unauthenticated", tenant: nil),
        Case(.legacyKey, .post, "/fcm/send", #"{"to":"canary"}"#, span: "POST /fcm/send", 200),
        Case(.nobody, .post, "/fcm/send", span: "POST /fcm/send", 401, "unauthenticated", tenant: nil),
        Case(.key, .trace, "/fcm/send", span: "TRACE /fcm/send", 405, "method_not_allowed", tenant: nil),
        Case(.key, .post, "/v1/projects/demo/messages:send", Self.v1Body, span: Self.v1, 200),
        Case(.legacyKey, .get, "/iid/info/canary", span: "GET /iid/info/{token}", 200),
        Case(.legacyKey, .get, Self.oneGroup, span: "GET /fcm/notification", 400, "not_found"),
        Case(.key, .get, "/v1/tenants/demo/audit", span: Self.list, 200),
        Case(.key, .get, "/v1/tenants/demo/audit?canary=1", span: Self.list, 422, "unknown_field"),
        Case(.key, .get, "/canary/device", span: "GET", 404, "not_found", tenant: nil),
        Case(.admin, .get, "/admin/v1/tenants/other", span: "GET /admin/v1/tenants/{tenant}", 200, tenant: "other"),
        Case(.admin, Self.canary, "/", span: "HTTP /", 405, "method_not_allowed", tenant: nil),
    ]

    @Test("Audit records of sends and admin changes have the trace id")
    func audited() async throws {
        try await TestGateway.run { gateway, key in
            let headers = ["traceparent": RequestTrace.sampleParent]
            _ = await gateway.send(#"{"token":"t"}"#, key: key, headers: headers)
            _ = await gateway.send(#"{"token":"t"}"#, key: key, headers: ["traceparent": "nonsense"])
            let limits = #"{"tenant":[{"rate":1,"per_s":1,"burst":1}]}"#
            _ = await gateway.admin(.put, "/admin/v1/tenants/other/limits", body: limits, headers: headers)
            try await gateway.settleAudit()
            let sends = try await gateway.auditRecords(of: "message.send")
            #expect(sends.map(\.traceID) == [RequestTrace.sampleID, nil])
            #expect(try await gateway.auditRecords(of: "limits.put").last?.traceID == RequestTrace.sampleID)
        }
    }

    @Test("A request's trace reaches the upstream, with and without an idempotency key", arguments: [nil, "once"])
    func reachesUpstream(idempotencyKey: String?) async throws {
        try await TestGateway.run { gateway, key in
            var headers = Self.state
            headers["Idempotency-Key"] = idempotencyKey
            let answer = await gateway.send(#"{"token":"t"}"#, key: key, headers: headers)
            #expect(answer.status == 200)
            let call = try #require(gateway.upstream.calls.last)
            #expect(call.origin.trace?.traceID == RequestTrace.sampleID)
            #expect(call.origin.requestID == answer.header("X-Request-ID"))
        }
    }

    @Test("Every request has one span with its route, status and code", arguments: Self.cases)
    func spans(expected: Case) async throws {
        let log = SpanLog()
        try await TestGateway.run(tracer: log.tracer()) { gateway, key in
            var headers = Self.state
            if expected.caller == .legacyKey { headers["Authorization"] = "key=\(key)" }
            let answer =
                switch expected.caller {
                case .admin: await gateway.admin(expected.method, expected.path, headers: headers)
                case .key, .legacyKey, .nobody:
                    await gateway.data(
                        expected.method,
                        expected.path,
                        key: expected.caller == .nobody ? nil : key,
                        body: expected.body,
                        headers: headers
                    )
                }
            #expect(answer.status == expected.status, "\(answer.body)")
            let span = try #require(log.spans.first)
            #expect(log.spans.count == 1)
            #expect(span.name == expected.name && span.kind == .server && span.start <= span.end)
            #expect(span.traceID == RequestTrace.sampleID && span.parentID == "00f067aa0ba902b7" && span.state == "a=1")
            #expect(span["url.scheme"] == .text("http"))
            #expect(span["http.response.status_code"] == .number(expected.status))
            #expect(span["fcmgw.request_id"] == answer.header("X-Request-ID").map { .text($0) })
            #expect(span["client.address"] == .text("192.0.2.1"))
            let (tenant, code) = (expected.tenant, expected.code)
            #expect(span["fcmgw.tenant"] == tenant.map { .text($0) } && span["fcmgw.code"] == code.map { .text($0) })
            let route = expected.name.split(separator: " ").dropFirst().first
            #expect(span["http.route"] == route.map { .text("\($0)") } && !"\(span)".lowercased().contains("canary"))
        }
    }

    @Test("Probes have no span, whatever they answer", arguments: ["/livez", "/readyz", "/metrics"])
    func probes(path: String) async throws {
        let log = SpanLog()
        try await TestGateway.run(tracer: log.tracer()) { gateway, _ in
            for method: HTTPRequest.Method in [.get, .post] {
                _ = await gateway.admin(method, path, headers: Self.state)
            }
            #expect(log.spans.isEmpty)
        }
    }

    @Test("A request that is shed has a span too", arguments: ["/v1/tenants/demo/messages", "/fcm/send", "/v1/other"])
    func shed(path: String) async throws {
        let log = SpanLog()
        try await TestGateway.run(maxInFlight: 1, tracer: log.tracer()) { gateway, key in
            let filler = try Principal.sample()
            #expect(gateway.gate.enter(filler, .message(recipients: 1, calls: 1, isUrgent: true), lag: .zero) == nil)
            #expect(await gateway.data(.post, path, key: key, body: "{}").status == 503)
            #expect(log.spans.map { $0["error.type"] } == [.text("overloaded")])
        }
    }
}
