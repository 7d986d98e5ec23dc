import Foundation
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Hostile bytes")
    struct HostileBytesTests {
        /// What a client sends, and how it is refused.
        struct Attack: Sendable {
            let name: String
            let bytes: String
            let status: Int
            let code: String
        }

        private static let path = "/v1/tenants/demo/messages"
        private static let start = "POST \(Self.path) HTTP/1.1\r\nHost: a\r\n"
        private static let attacks = [
            Attack(
                name: "one large field",
                bytes: start + "X-Large: \(String(repeating: "x", count: 9_000))\r\n\r\n",
                status: 431,
                code: "header_too_large"
            ),
            Attack(
                name: "a large head",
                bytes: start + (1...20).map { "X-\($0): \(String(repeating: "x", count: 1_000))\r\n" }.joined(),
                status: 431,
                code: "header_too_large"
            ),
            Attack(
                name: "many fields",
                bytes: start + (1...200).map { "X-\($0): x\r\n" }.joined() + "\r\n",
                status: 431,
                code: "header_too_large"
            ),
            Attack(
                name: "a long target",
                bytes: "GET /\(String(repeating: "u", count: 5_000)) HTTP/1.1\r\nHost: a\r\n\r\n",
                status: 414,
                code: "uri_too_long"
            ),
            Attack(
                name: "a large message",
                bytes: start + "Content-Length: 1048577\r\n\r\n",
                status: 413,
                code: "body_too_large"
            ),
            Attack(
                name: "a large chunk",
                bytes: start + "Transfer-Encoding: chunked\r\n\r\n100001\r\n",
                status: 413,
                code: "body_too_large"
            ),
            Attack(
                name: "a large body elsewhere",
                bytes: "POST /v1/other HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n",
                status: 413,
                code: "body_too_large"
            ),
            Attack(name: "no Host", bytes: "GET / HTTP/1.1\r\n\r\n", status: 400, code: "bad_request"),
            Attack(
                name: "two Hosts",
                bytes: "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
                status: 400,
                code: "bad_request"
            ),
            Attack(
                name: "a malformed Host",
                bytes: "GET / HTTP/1.1\r\nHost: a/b@c\r\n\r\n",
                status: 400,
                code: "bad_request"
            ),
            Attack(
                name: "a target that contradicts Host",
                bytes: "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
                status: 400,
                code: "bad_request"
            ),
            Attack(
                name: "two lengths",
                bytes: start + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                status: 400,
                code: "bad_request"
            ),
            Attack(
                name: "chunks in HTTP/1.0",
                bytes: "POST \(path) HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                status: 400,
                code: "bad_request"
            ),
            Attack(name: "no HTTP", bytes: "\u{16}\u{3}\u{1}\u{2}\r\n\r\n", status: 400, code: "bad_request"),
            Attack(name: "half a head, then silence", bytes: "GET / HT", status: 408, code: "request_timeout"),
            Attack(
                name: "half a body, then silence",
                bytes: start + "Content-Length: 10\r\n\r\n12345",
                status: 408,
                code: "request_timeout"
            ),
        ]

        @Test("Each attack gets one problem and a closed connection, and the next caller is served")
        func attacks() async throws {
            try await PrivateDirectory.with { directory in
                var environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                environment["GATEWAY_HTTP_HEAD_TIMEOUT_MS"] = "300"
                environment["GATEWAY_HTTP_BODY_TIMEOUT_MS"] = "300"
                try await RunningGateway.serving(environment) { gateway in
                    let port = Int(gateway.address.split(separator: ":").last ?? "") ?? 0
                    for attack in Self.attacks {
                        // Ends only when the gateway closes the connection.
                        let reply = try await RawExchange.reply(port: port, sending: attack.bytes)
                        #expect(reply.status == attack.status, "\(attack.name): \(reply.text)")
                        #expect(reply.headers["content-type"] == "application/problem+json", "\(attack.name)")
                        #expect(reply.headers["connection"] == "close", "\(attack.name)")
                        #expect(reply.code == attack.code, "\(attack.name): \(reply.text)")
                        #expect(reply.json["status"]?.wholeNumber == attack.status, "\(attack.name): \(reply.text)")
                        let next = try await Reply.to("GET", "\(gateway.address)\(Self.path)")
                        #expect(next.status == 401 || next.status == 405, "after \(attack.name)")
                    }
                    let metrics = try await gateway.metrics()
                    #expect(metrics.contains(#"fcmgw_http_rejected_total{reason="header_too_large"} 3"#))
                    #expect(metrics.contains(#"fcmgw_http_rejected_total{reason="request_timeout"} 2"#))
                    try await gateway.stopInOrder()
                }
            }
        }
    }
}
