import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayTestKit
import HTTPTypes
import InMemoryLogging
import Logging
import MetricsTestKit
import Testing

@testable import GatewayHTTP

struct AccessLogTests {
    /// The access log's lines without their durations, which differ between runs.
    private static func lines(_ gateway: TestGateway) -> [(Logger.Level, [String: String])] {
        gateway.logs.entries.filter { $0.message == "Request answered" }
            .map { entry in
                var fields = entry.metadata.mapValues { "\($0)" }
                #expect(Int(fields["duration_us"] ?? "") != nil)
                fields["duration_us"] = nil
                return (entry.level, fields)
            }
    }

    @Test("A send's log line has the request, the tenant, the key's id, the trace and the status")
    func send() async throws {
        try await TestGateway.run { gateway, key in
            let body = #"{"token":"canary"}"#
            let answer = await gateway.send(
                body,
                key: key,
                headers: ["X-Request-ID": "mine", "traceparent": RequestTrace.sampleParent]
            )
            let line = try #require(Self.lines(gateway).first)
            #expect(line.0 == .info)
            #expect(
                line.1 == [
                    "method": "POST", "route": "/v1/tenants/{tenant}/messages", "status": "200", "tenant": "demo",
                    "key_id": String(key.split(separator: "_")[1]), "request_id": "mine",
                    "trace_id": RequestTrace.sampleID, "span_id": "00f067aa0ba902b7", "remote_address": "192.0.2.1",
                    "bytes_in": String(body.utf8.count), "bytes_out": String(answer.body.utf8.count),
                ]
            )
            #expect(Self.lines(gateway).count == 1)
        }
    }

    @Test(
        "Every surface records and measures a send once, and logs neither payload, token nor key",
        arguments: SendSurface.allCases
    )
    func traces(surface: SendSurface) async throws {
        let route =
            switch surface {
            case .rest: "/v1/tenants/{tenant}/messages"
            case .legacy, .form: "/fcm/send"
            case .v1: "/v1/projects/{project}/messages:send"
            }
        try await TestGateway.run { gateway, key in
            try await gateway.setUpstream(.legacy)
            let body = surface.body("secret-device", score: "secret-value")
            let headers = ["X-Request-ID": "call-7"]
            #expect(await surface.send(gateway, body, key: key, headers: headers).status == 200)
            if surface != .form { #expect(await surface.send(gateway, body + "x", key: key).status == 400) }
            try await gateway.settleAudit()
            let records = try await gateway.auditRecords(of: "message.send")
            #expect(records.map(\.requestID) == ["call-7"])
            #expect(records.map(\.targetKind) == ["token"])
            #expect(records.map(\.outcome) == [.accepted])
            let sent = [("tenant", "demo"), ("kind", "token"), ("outcome", "accepted")]
            #expect(try gateway.metrics.expectCounter("fcmgw_messages_total", sent).totalValue == 1)
            let labels = [("route", route), ("method", "POST"), ("status", "200")]
            let timer = try gateway.metrics.expectTimer("fcmgw_http_request_duration_seconds", labels)
            #expect(timer.values.count == 1)
            let log = gateway.logText
            #expect(log.contains("route=\(route)") && log.contains("tenant=demo"))
            #expect(!log.contains("secret") && !log.contains(key))
        }
    }

    @Test("A refusal's log line has its code, and the key's id if the key was valid")
    func refusals() async throws {
        try await TestGateway.run { gateway, key in
            _ = await gateway.send("{", key: key)
            _ = await gateway.send("{}", key: "fgw_canary_secret")
            _ = await gateway.data(.get, "/v1/tenants/demo/audit?x=1", key: key)
            _ = await gateway.data(.get, "/v1/tenants/demo/audit", key: nil)
            _ = await gateway.data(.post, "/fcm/send", key: nil, headers: ["Authorization": "key=canary"])
            _ = await gateway.admin(.get, "/admin/v1/tenants", token: "canary")
            let lines = Self.lines(gateway).map(\.1)
            #expect(
                lines.map { $0["code"] } == [
                    "malformed_json", "unauthenticated", "unknown_field", "unauthenticated", "unauthenticated",
                    "unauthenticated",
                ]
            )
            #expect(lines.map { $0["key_id"] != nil } == [true, false, true, false, false, false])
            #expect(lines.map { $0["status"] } == ["400", "401", "422", "401", "401", "401"])
            #expect(lines.allSatisfy { !"\($0)".contains("canary") })
        }
    }

    @Test("Every request has exactly one log line, at a level that fits its outcome")
    func once() async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(SendResult(refused: .upstreamUnavailable, upstreamCode: "503"))
            _ = await gateway.send(#"{"token":"t"}"#, key: key)
            _ = await gateway.data(.get, "/nowhere/canary", key: key)
            _ = await gateway.data(.init("CANARY") ?? .get, "/fcm/notification", key: key)
            for path in ["/livez", "/readyz", "/metrics"] { _ = await gateway.admin(.get, path, token: nil) }
            _ = await gateway.admin(.get, "/openapi.yaml", token: nil)
            for number in 0..<64 {
                let filler = try Principal.sample(tenant: "filler-\(number)")
                #expect(
                    gateway.gate.enter(filler, .message(recipients: 1, calls: 1, isUrgent: true), lag: .zero) == nil
                )
            }
            _ = await gateway.data(.get, "/v1/tenants/demo/audit", key: key, lag: .milliseconds(6))
            _ = await gateway.data(.get, "/iid/info/canary", key: key, lag: .milliseconds(6))
            let lines = Self.lines(gateway)
            #expect(lines.map(\.0) == [.warning, .info, .info, .debug, .debug, .debug, .info, .debug, .debug])
            #expect(
                lines.map { $0.1["status"] } == ["503", "404", "405", "200", "503", "200", "200", "503", "503"]
            )
            #expect(
                lines.map { $0.1["code"] } == [
                    "upstream_unavailable", "not_found", "method_not_allowed", nil, nil, nil, nil, "overloaded",
                    "overloaded",
                ]
            )
            #expect(lines.map { $0.1["method"] } == ["POST", "GET", "other", "GET", "GET", "GET", "GET", "GET", "GET"])
            #expect(lines.allSatisfy { !"\($0.1)".lowercased().contains("canary") })
        }
    }

    @Test("A refusal by the HTTP server is logged with the answer's request id", arguments: [true, false])
    func serverRefusals(hasHead: Bool) throws {
        let logs = InMemoryLogHandler()
        var logger = Logger(label: "test") { _ in logs }
        logger.logLevel = .debug
        let listener = Listener.withoutRoutes(metrics: TestMetrics(), logger: logger)
        let head = HTTPRequestHead(HTTPRequest(method: .post, scheme: "http", authority: "a", path: "/canary"))
        let request = HTTPRefusedRequest(remoteAddress: "192.0.2.1", head: hasHead ? head : nil)
        for (refusal, level) in [
            (HTTPServerRefusal.bodyTooLarge, Logger.Level.info), (.headerTooLarge, .info),
            (.tooManyConnections, .debug),
        ] {
            let answer = Answer(listener.response(to: refusal, request))
            let entry = try #require(logs.entries.last)
            #expect(entry.message == "Request refused")
            #expect(entry.level == level)
            let fields = entry.metadata.mapValues { "\($0)" }
            #expect(fields["request_id"] == answer.header("X-Request-ID"))
            #expect(fields["status"] == String(answer.status))
            #expect(fields["method"] == (hasHead ? "POST" : "none"))
            #expect(fields["remote_address"] == "192.0.2.1")
            #expect(!"\(fields)".contains("canary"))
        }
        #expect(
            logs.entries.map { "\($0.metadata["code"] ?? "")" } == ["body_too_large", "header_too_large", "overloaded"]
        )
    }

    @Test("No entry is built for a line that is not logged")
    func silent() {
        let logs = InMemoryLogHandler()
        var logger = Logger(label: "test") { _ in logs }
        logger.logLevel = .warning
        func entry() -> AccessLog.Entry {
            Issue.record("a line was made")
            return AccessLog.Entry(
                requestID: "",
                method: "",
                route: "",
                status: 0,
                bytesIn: 0,
                bytesOut: 0,
                duration: .zero
            )
        }
        AccessLog(logger: logger).write(entry(), status: 200)
        AccessLog(logger: logger).write(entry(), status: 404)
        AccessLog(logger: logger).write(entry(), status: 503, isQuiet: true)
        #expect(logs.entries.isEmpty)
    }
}
