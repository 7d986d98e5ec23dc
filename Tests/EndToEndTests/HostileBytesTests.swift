import Foundation
import NIOCore
import ProcessTestKit
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
                name: "a hundred thousand fields",
                bytes: start + (1...100_000).map { "X-\($0): x\r\n" }.joined() + "\r\n",
                status: 431,
                code: "header_too_large"
            ),
            Attack(
                name: "an expectation",
                bytes: start + "Expect: coffee\r\nContent-Length: 1\r\n\r\n",
                status: 417,
                code: "bad_request"
            ),
            Attack(
                name: "a transfer coding",
                bytes: start + "Transfer-Encoding: br\r\n\r\n",
                status: 501,
                code: "bad_request"
            ),
            Attack(name: "HTTP/3.0", bytes: "GET / HTTP/3.0\r\nHost: a\r\n\r\n", status: 505, code: "bad_request"),
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
                for listener in ["HTTP", "ADMIN"] {
                    environment["GATEWAY_\(listener)_HEAD_TIMEOUT_MS"] = "5000"
                    environment["GATEWAY_\(listener)_BODY_TIMEOUT_MS"] = "5000"
                }
                try await RunningGateway.serving(environment) { gateway in
                    for (attack, port) in Self.attacks.flatMap({ [($0, gateway.port), ($0, gateway.adminPort)] }) {
                        // Ends only when the gateway closes the connection.
                        let reply = try await RawExchange.reply(port: port, sending: attack.bytes)
                        #expect(reply.status == attack.status, "\(attack.name): \(reply.text)")
                        #expect(reply.headers["content-type"] == "application/problem+json", "\(attack.name)")
                        #expect(reply.headers["connection"] == "close", "\(attack.name)")
                        #expect(reply.code == attack.code, "\(attack.name): \(reply.text)")
                        #expect(reply.json["status"]?.wholeNumber == attack.status, "\(attack.name): \(reply.text)")
                        #expect(reply.headers["date"]?.hasSuffix(" GMT") == true, "\(attack.name)")
                        let next = try await Reply.to("GET", "\(gateway.address)\(Self.path)")
                        #expect(next.status == 401 || next.status == 405, "after \(attack.name)")
                    }
                    let metrics = try await gateway.metrics()
                    let counts = [
                        "header_too_large": 4, "uri_too_long": 1, "body_too_large": 3, "bad_request": 7,
                        "head_timeout": 1, "body_timeout": 1, "expectation": 1, "transfer_encoding": 1,
                        "http_version": 1,
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
                var environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                for listener in ["HTTP", "ADMIN"] {
                    environment["GATEWAY_\(listener)_KEEP_ALIVE_TIMEOUT_MS"] = "1000"
                    environment["GATEWAY_\(listener)_WRITE_STALL_TIMEOUT_MS"] = "200"
                }
                try await RunningGateway.serving(environment) { gateway in
                    for port in [gateway.port, gateway.adminPort] {
                        let request = "GET /v1/x HTTP/1.1\r\nHost: a\r\n\r\n"
                        // Ends only when the gateway closes the connection.
                        let idle = try await RawExchange.reply(port: port, sending: request)
                        #expect(idle.headers["connection"] == nil)
                        #expect((400..<500).contains(idle.status))

                        let slow = try await SlowReader.connect(port: port)
                        slow.writeAndFlush(
                            ByteBuffer(string: String(repeating: request, count: 20_000)),
                            promise: nil
                        )
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
