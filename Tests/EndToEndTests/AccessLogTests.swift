import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Access log and traces")
    struct AccessLogTests {
        private static let traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
        private static let traceParent = "00-\(traceID)-00f067aa0ba902b7-01"

        /// The lines of requests with some ids, once each of the ids has one.
        private static func lines(of ids: [String], _ gateway: RunningGateway) async throws -> [JSONValue] {
            _ = try await gateway.process.errors.first { text in ids.allSatisfy(text.contains) ? true : nil }
            // What came later shows that no further line of theirs is under way.
            let last = try await Reply.to("GET", "\(gateway.adminAddress)/livez").headers["x-request-id"] ?? ""
            let text = try await gateway.process.errors.first { $0.contains(last) ? $0 : nil }
            return text.split(separator: "\n").compactMap { try? JSONValue(parsing: Data($0.utf8)) }
                .filter { line in
                    ["Request answered", "Request refused"].contains(line["message"]?.text)
                        && ids.contains(line["request_id"]?.text ?? "")
                }
        }

        @Test("Every request has exactly one line, whichever listener it came to and however far it got")
        func once() async throws {
            // Probes are requests, too.
            try await Site.with(["GATEWAY_LOG_LEVELS_ACCESS": "debug"]) { site in
                let (gateway, key) = (site.gateway, site.key)
                let admin = gateway.adminAddress
                let wrong = ["Authorization": "Bearer wrong"]
                var replies = [
                    try await gateway.send(#"{"token":"a"}"#, key: key), try await gateway.send("{", key: key),
                    try await gateway.send("{}", key: "wrong"),
                    try await gateway.ask("GET", "/v1/tenants/demo/audit", key: key),
                    try await Reply.to("GET", "\(gateway.address)/nowhere"),
                    try await gateway.ask("POST", "/fcm/send", key: "x"),
                    try await gateway.ask("GET", "/iid/info/device", key: key),
                    try await Reply.to("GET", "\(admin)/admin/v1/tenants/demo", headers: wrong),
                    try await gateway.admin("GET", "tenants/demo"),
                    try await Reply.to("GET", "\(admin)/readyz"),
                ]
                for port in [gateway.port, gateway.adminPort] {
                    for bytes in [
                        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n",
                        "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 9_000))\r\n\r\n",
                        "nonsense\r\n\r\n",
                    ] {
                        replies.append(try await RawExchange.reply(port: port, sending: bytes))
                    }
                }
                #expect(
                    replies.map(\.status) == [
                        200, 400, 401, 200, 404, 401, 401, 401, 200, 200, 413, 431, 400, 413, 431, 400,
                    ]
                )
                let ids = replies.compactMap { $0.headers["x-request-id"] }
                #expect(Set(ids).count == replies.count)
                let lines = try await Self.lines(of: ids, gateway)
                #expect(lines.compactMap { $0["request_id"]?.text }.sorted() == ids.sorted())
                for (id, reply) in zip(ids, replies) {
                    let line = try #require(lines.first { $0["request_id"]?.text == id })
                    #expect(line["status"]?.wholeNumber == reply.status)
                    #expect(line["logger"]?.text == "access")
                    #expect(line["remote_address"]?.text == "127.0.0.1")
                    #expect(line["bytes_out"]?.wholeNumber == reply.body.count)
                    #expect(line["method"]?.text != nil && line["route"]?.text != nil)
                    #expect(line["duration_us"]?.wholeNumber != nil && line["bytes_in"]?.wholeNumber != nil)
                }
                try await gateway.stopInOrder()
            }
        }

        @Test("A caller's trace goes on to FCM by every API, into the log and into the audit")
        func trace() async throws {
            try await Site.with(["GATEWAY_LOG_LEVELS_UPSTREAM": "debug"]) { site in
                let (gateway, emulator) = (site.gateway, site.emulator)
                let scopes = ["messages:send", "topics:manage", "device-groups:manage"]
                let key = try await gateway.makeKey("demo", scopes)
                try await self.callWithTrace(gateway, key, groups: true)
                let account = try await emulator.makeServiceAccount(project: "demo-project")
                try await gateway.useV1("demo", account, endpoint: emulator.address)
                try await self.callWithTrace(gateway, key, groups: false)
                let calls = try await emulator.journal().filter { $0["path"]?.text != "/token" }
                #expect(calls.count >= 5)
                for call in calls {
                    #expect(call.headers("traceparent") == [Self.traceParent], "\(call["path"]?.text ?? "")")
                    #expect(call.headers("tracestate") == ["a=1"])
                }
                let lines = try await gateway.process.errors.first { text in
                    let lines = text.split(separator: "\n")
                        .compactMap { try? JSONValue(parsing: Data($0.utf8)) }
                        .filter { $0["trace_id"]?.text == Self.traceID }
                    return lines.count == 5 + calls.count ? lines : nil
                }
                #expect(lines.count { $0["logger"]?.text == "access" } == 5)
                #expect(lines.count { $0["logger"]?.text == "upstream" } == calls.count)
                #expect(lines.allSatisfy { $0["span_id"]?.text == "00f067aa0ba902b7" })
                #expect(try await Self.recorded(gateway) == 5)
                try await gateway.stopInOrder()
            }
        }

        /// How many records the audit has of the trace, which may appear a moment after the answers.
        private static func recorded(_ gateway: RunningGateway) async throws -> Int {
            try await eventually {
                let count = try await gateway.audit().count { $0["trace_id"]?.text == Self.traceID }
                return count >= 5 ? count : nil
            }
        }

        private func callWithTrace(_ gateway: RunningGateway, _ key: String, groups: Bool) async throws {
            let headers = ["traceparent": Self.traceParent, "tracestate": "a=1"]
            for (method, path, body) in [
                ("POST", "/messages", #"{"token": "a"}"#),
                ("POST", "/topics/news/subscriptions", #"{"tokens": ["a"]}"#),
                ("PUT", "/device-groups/family", #"{"tokens": ["a"]}"#),
            ]
            .prefix(groups ? 3 : 2) {
                let reply = try await gateway.ask(method, "/v1/tenants/demo" + path, key: key, body, headers: headers)
                #expect((200...201).contains(reply.status), "\(path): \(reply.text)")
            }
        }
    }
}
