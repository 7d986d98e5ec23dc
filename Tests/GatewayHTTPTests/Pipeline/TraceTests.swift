import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import Testing
import Tracing

@testable import GatewayHTTP

struct TraceTests {
    private static let state = ["traceparent": RequestTrace.sampleParent, "tracestate": "a=1"]

    /// A request, and how its span ends.
    struct Case: Sendable {
        var method: HTTPRequest.Method = .post
        var path: String
        var body = ""
        var hasKey = true
        var isLegacyKey = false
        var isAdmin = false
        var name: String
        var status: Int
        var code: String?
        var tenant: String? = "demo"
    }

    @Test("The trace's id is in the audit, whatever the route")
    func audited() async throws {
        try await TestGateway.run { gateway, key in
            let headers = ["traceparent": RequestTrace.sampleParent]
            _ = await gateway.send(#"{"token":"t"}"#, key: key, headers: headers)
            _ = await gateway.send(#"{"token":"t"}"#, key: key, headers: ["traceparent": "nonsense"])
            let limits = #"{"tenant":[{"rate":1,"per_s":1,"burst":1}]}"#
            _ = await gateway.admin(.put, "/admin/v1/tenants/other/limits", body: limits, headers: headers)
            try await gateway.settleAudit()
            let records = gateway.auditStore.current
            #expect(records.records(of: "message.send").map(\.traceID) == [RequestTrace.sampleID, nil])
            #expect(records.records(of: "limits.put").last?.traceID == RequestTrace.sampleID)
        }
    }

    @Test("A request's trace reaches the upstream, with the idempotency key and without", arguments: [nil, "once"])
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

    @Test(
        "Every request has one span, which says how it ended and is ended once",
        arguments: [
            Case(
                path: "/v1/tenants/demo/messages",
                body: #"{"token":"canary"}"#,
                name: "POST /v1/tenants/{tenant}/messages",
                status: 200
            ),
            Case(
                path: "/v1/tenants/demo/messages",
                body: "{",
                name: "POST /v1/tenants/{tenant}/messages",
                status: 400,
                code: "malformed_json"
            ),
            Case(
                path: "/v1/tenants/canary:token/messages",
                hasKey: false,
                name: "POST /v1/tenants/{tenant}/messages",
                status: 401,
                code: "unauthenticated",
                tenant: nil
            ),
            Case(
                path: "/fcm/send",
                body: #"{"to":"canary"}"#,
                isLegacyKey: true,
                name: "POST /fcm/send",
                status: 200
            ),
            Case(
                path: "/fcm/send",
                hasKey: false,
                name: "POST /fcm/send",
                status: 401,
                code: "unauthenticated",
                tenant: nil
            ),
            Case(
                method: .trace,
                path: "/fcm/notification",
                name: "TRACE /fcm/notification",
                status: 405,
                code: "method_not_allowed",
                tenant: nil
            ),
            Case(
                path: "/v1/projects/demo/messages:send",
                body: #"{"message":{"token":"canary"}}"#,
                name: "POST /v1/projects/{project}/messages:send",
                status: 200
            ),
            Case(
                method: .get,
                path: "/iid/info/canary",
                isLegacyKey: true,
                name: "GET /iid/info/{token}",
                status: 200
            ),
            Case(
                method: .get,
                path: "/fcm/notification?notification_key_name=canary",
                isLegacyKey: true,
                name: "GET /fcm/notification",
                status: 400,
                code: "not_found"
            ),
            Case(
                method: .get,
                path: "/v1/tenants/demo/audit",
                name: "GET /v1/tenants/{tenant}/audit",
                status: 200
            ),
            Case(
                method: .get,
                path: "/v1/tenants/demo/audit?canary=1",
                name: "GET /v1/tenants/{tenant}/audit",
                status: 422,
                code: "unknown_field"
            ),
            Case(
                method: .get,
                path: "/canary/device",
                name: "GET",
                status: 404,
                code: "not_found",
                tenant: nil
            ),
            Case(method: .get, path: "/livez", isAdmin: true, name: "GET /livez", status: 200, tenant: nil),
            Case(
                method: .get,
                path: "/admin/v1/tenants/other",
                isAdmin: true,
                name: "GET /admin/v1/tenants/{tenant}",
                status: 200,
                tenant: "other"
            ),
            Case(
                method: .init("CANARY") ?? .get,
                path: "/livez",
                isAdmin: true,
                name: "HTTP /livez",
                status: 405,
                code: "method_not_allowed",
                tenant: nil
            ),
        ]
    )
    func spans(expected: Case) async throws {
        let tracer = RecordingTracer()
        try await TestGateway.run(tracer: RequestTracer(tracer)) { gateway, key in
            var headers = Self.state
            if expected.isLegacyKey { headers["Authorization"] = "key=\(key)" }
            let answer =
                expected.isAdmin
                ? await gateway.admin(expected.method, expected.path, headers: headers)
                : await gateway.data(
                    expected.method,
                    expected.path,
                    key: expected.hasKey ? key : nil,
                    body: expected.body,
                    headers: headers
                )
            #expect(answer.status == expected.status, "\(answer.body)")
            let span = try #require(tracer.spans.first)
            #expect(tracer.spans.count == 1)
            #expect(span.name == expected.name)
            #expect(span.kind == .server && span.ends == 1)
            #expect(span.traceID == RequestTrace.sampleID && span.parentID == "00f067aa0ba902b7" && span.state == "a=1")
            #expect(span.attributes["http.response.status_code"] == String(expected.status))
            #expect(span.attributes["fcmgw.request_id"] == answer.header("X-Request-ID"))
            #expect(span.attributes["client.address"] == "192.0.2.1")
            #expect(span.attributes["fcmgw.tenant"] == expected.tenant)
            #expect(span.attributes["fcmgw.code"] == expected.code)
            #expect(
                span.attributes["http.route"] == (expected.name.split(separator: " ").dropFirst().first.map { "\($0)" })
            )
            #expect(!"\(span)".lowercased().contains("canary"))
        }
    }

    @Test("A send that the upstream fails is an error of its span")
    func failing() async throws {
        let tracer = RecordingTracer()
        try await TestGateway.run(tracer: RequestTracer(tracer)) { gateway, key in
            gateway.answer(UpstreamResult(answer: .failed(.upstreamUnavailable), upstreamCode: "503"))
            let answer = await gateway.send(#"{"token":"t"}"#, key: key)
            #expect(answer.status == 503)
            let span = try #require(tracer.spans.first)
            #expect(span.status?.code == .error)
            #expect(span.attributes["error.type"] == "upstream_unavailable")
            #expect(span.parentID == nil)
        }
    }

    @Test("A request that is shed has a span too", arguments: ["/v1/tenants/demo/messages", "/fcm/send", "/v1/other"])
    func shed(path: String) async throws {
        let tracer = RecordingTracer()
        try await TestGateway.run(maxInFlight: 1, tracer: RequestTracer(tracer)) { gateway, key in
            let filler = try Principal.sample()
            #expect(gateway.gate.enter(filler, .message(recipients: 1, isUrgent: true), lag: .zero) == nil)
            let answer = await gateway.data(.post, path, key: key, body: "{}")
            #expect(answer.status == 503)
            #expect(tracer.spans.map(\.ends) == [1])
            #expect(tracer.spans.first?.attributes["error.type"] == "overloaded")
        }
    }
}
