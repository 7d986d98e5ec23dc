import GatewayTestKit
import NIOCore
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("Hostile bytes")
    struct HostileBytesTests {
        @Test("Both listeners close idle connections and connections whose client doesn't read")
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
