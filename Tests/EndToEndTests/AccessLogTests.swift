import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Access log")
    struct AccessLogTests {
        /// Returns the access log lines of some request ids once every id has a line.
        private static func lines(of ids: [String], _ gateway: RunningGateway) async throws -> [JSON] {
            _ = try await gateway.process.errors.first { text in ids.allSatisfy(text.contains) ? true : nil }
            // A later request's line proves that no further line of these ids is pending.
            let last = try await Reply.to("GET", "\(gateway.adminAddress)/livez").headers["x-request-id"] ?? ""
            let text = try await gateway.process.errors.first { $0.contains(last) ? $0 : nil }
            return text.split(separator: "\n").compactMap { try? JSON(parsing: $0) }
                .filter { line in
                    ["Request answered", "Request refused"].contains(line["message"]?.text)
                        && ids.contains(line["request_id"]?.text ?? "")
                }
        }

        @Test("Each request has exactly one access log line on both listeners, including refused requests")
        func once() async throws {
            // Probes are logged at debug.
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
                    #expect(line["status"]?.int == reply.status)
                    #expect(line["logger"]?.text == "access")
                    #expect(line["remote_address"]?.text == "127.0.0.1")
                    #expect(line["bytes_out"]?.int == reply.body.count)
                    #expect(line["method"]?.text != nil && line["route"]?.text != nil)
                    #expect(line["duration_us"]?.int != nil && line["bytes_in"]?.int != nil)
                }
                try await gateway.stopInOrder()
            }
        }
    }
}
