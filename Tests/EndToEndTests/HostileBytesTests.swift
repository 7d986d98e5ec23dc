import GatewayTestKit
import NIOCore
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("Hostile bytes")
    struct HostileBytesTests {
        /// What a client sends, and how it is refused.
        typealias Attack = (name: String, bytes: String, status: Int, code: String)

        private static let path = "/v1/tenants/demo/messages"
        private static let start = "POST \(Self.path) HTTP/1.1\r\nHost: a\r\n"

        private static func text(_ count: Int) -> String { String(repeating: "x", count: count) }

        private static let attacks: [Attack] = [
            ("one large field", "\(Self.start)X-Large: \(Self.text(9_000))\r\n\r\n", 431, "header_too_large"),
            ("a long target", "GET /\(Self.text(5_000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414, "uri_too_long"),
            ("a large message", "\(Self.start)Content-Length: 1048577\r\n\r\n", 413, "body_too_large"),
            (
                "a large body elsewhere", "POST /v1/other HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n", 413,
                "body_too_large"
            ),
            ("no Host", "GET / HTTP/1.1\r\n\r\n", 400, "bad_request"),
            ("half a head, then silence", "GET / HT", 408, "request_timeout"),
            ("half a body, then silence", "\(Self.start)Content-Length: 10\r\n\r\n12345", 408, "request_timeout"),
        ]

        @Test("Each attack gets one problem and a closed connection, and the next caller is served")
        func attacks() async throws {
            try await PrivateDirectory.with { directory in
                let environment = directory.environment([
                    "GATEWAY_HTTP_HEAD_TIMEOUT_MS": "5000", "GATEWAY_HTTP_BODY_TIMEOUT_MS": "5000",
                    "GATEWAY_ADMIN_HEAD_TIMEOUT_MS": "5000", "GATEWAY_ADMIN_BODY_TIMEOUT_MS": "5000",
                ])
                try await RunningGateway.serving(environment) { gateway in
                    for (attack, port) in Self.attacks.flatMap({ [($0, gateway.port), ($0, gateway.adminPort)] }) {
                        // Ends only when the gateway closes the connection.
                        let reply = try await RawExchange.reply(port: port, sending: attack.bytes)
                        #expect(reply.status == attack.status, "\(attack.name): \(reply.text)")
                        #expect(reply.headers["content-type"] == "application/problem+json", "\(attack.name)")
                        #expect(reply.headers["connection"] == "close", "\(attack.name)")
                        #expect(reply.code == attack.code, "\(attack.name): \(reply.text)")
                        #expect(reply.json["status"]?.int == attack.status, "\(attack.name): \(reply.text)")
                        #expect(reply.headers["date"]?.hasSuffix(" GMT") == true, "\(attack.name)")
                        let next = try await Reply.to("GET", "\(gateway.address)\(Self.path)")
                        #expect(next.status == 401 || next.status == 405, "after \(attack.name)")
                    }
                    let metrics = try await gateway.metrics()
                    let counts = [
                        "header_too_large": 1, "uri_too_long": 1, "body_too_large": 2, "bad_request": 1,
                        "head_timeout": 1, "body_timeout": 1,
                    ]
                    for (reason, count) in counts {
                        let line = #"fcmgw_http_rejected_total{reason="\#(reason)"} \#(count * 2)"#
                        #expect(metrics.contains("\(line)\n"), "\(line)")
                    }
                    #expect(counts.values.reduce(0, +) == Self.attacks.count)
                    try await gateway.stopInOrder()
                }
            }
        }

        @Test("Idle connections and callers that do not read are closed on time, on both listeners")
        func idlersAndSlowReaders() async throws {
            try await PrivateDirectory.with { directory in
                let environment = directory.environment([
                    "GATEWAY_HTTP_KEEP_ALIVE_TIMEOUT_MS": "1000", "GATEWAY_HTTP_WRITE_STALL_TIMEOUT_MS": "200",
                    "GATEWAY_ADMIN_KEEP_ALIVE_TIMEOUT_MS": "1000", "GATEWAY_ADMIN_WRITE_STALL_TIMEOUT_MS": "200",
                ])
                try await RunningGateway.serving(environment) { gateway in
                    for port in [gateway.port, gateway.adminPort] {
                        let request = "GET /v1/x HTTP/1.1\r\nHost: a\r\n\r\n"
                        // Ends only when the gateway closes the connection.
                        let idle = try await RawExchange.reply(port: port, sending: request)
                        #expect(idle.headers["connection"] == nil)
                        #expect((400..<500).contains(idle.status))

                        let slow = try await SlowReader.connect(port: port)
                        slow.writeAndFlush(ByteBuffer(string: String(repeating: request, count: 20_000)), promise: nil)
                        try await slow.closeFuture.get()
                    }
                    let metrics = try await gateway.metrics()
                    #expect(metrics.contains(#"fcmgw_http_rejected_total{reason="write_stalled"} 2"#))
                    try await gateway.stopInOrder()
                }
            }
        }
    }
}
