import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Metrics")
    struct MetricsTests {
        static let promtool = Program.named("promtool")

        @Test("promtool finds nothing to object to", .enabled(if: Self.promtool != nil, "promtool is not installed"))
        func isClean() async throws {
            let promtool = try #require(Self.promtool)
            try await DevGateway.with { dev in
                for body in ["{", "{}", #"{"token": "a"}"#, #"{"tokens": ["ERROR_NotRegistered", "a"]}"#] {
                    _ = try await dev.send(body)
                }
                _ = try await dev.gateway.send("{}", key: "none")
                _ = try await dev.gateway.admin("GET", "audit")
                _ = try await RawExchange.reply(port: dev.gateway.port, sending: "GET / HTTP/1.1\r\n\r\n")
                let reply = try await Reply.to("GET", "\(dev.gateway.adminAddress)/metrics")
                #expect(reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
                for name in Self.names { #expect(reply.text.contains("# TYPE \(name) "), "\(name)") }
                let outcome = try await Program.run(promtool, ["check", "metrics"], input: reply.text).expect(0)
                #expect(outcome.output.isEmpty && outcome.errors.isEmpty, "\(outcome.output)\(outcome.errors)")
            }
        }

        private static let names = [
            "fcmgw_http_request_duration_seconds", "fcmgw_http_active_requests", "fcmgw_http_rejected_total",
            "fcmgw_shed_total", "fcmgw_limiter_duration_seconds", "fcmgw_store_up", "fcmgw_store_call_duration_seconds",
            "fcmgw_directory_refused_rows",
            "fcmgw_messages_total", "fcmgw_upstream_attempt_duration_seconds", "fcmgw_upstream_inflight",
            "fcmgw_limiter_decisions_total", "fcmgw_auth_total", "fcmgw_audit_records_total",
            "fcmgw_audit_queue_records", "fcmgw_audit_write_duration_seconds", "fcmgw_build_info",
            "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
        ]
    }
}
