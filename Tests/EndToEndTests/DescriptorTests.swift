import Foundation
import GatewayTestKit
import NIOCore
import NIOPosix
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("Descriptors and connections")
    struct DescriptorTests {
        private static let descriptors = 64

        private static let lowersLimits = FileManager.default.isExecutableFile(atPath: Self.limiter)
        private static let limiter = "/usr/bin/prlimit"

        @Test(
            "Without free descriptors open connections are served, and new ones once some are free",
            .enabled(if: Self.lowersLimits)
        )
        func exhausted() async throws {
            try await Site.with(["GATEWAY_EVENT_LOOPS": "1", "GATEWAY_HTTP_HEAD_TIMEOUT_MS": "60000"]) { site in
                let (gateway, key) = (site.gateway, site.key)
                try await KeptConnection.with(port: gateway.port) { session in
                    try await KeptConnection.with(port: gateway.adminPort) { operators in
                        // This leaves a connection to FCM open.
                        try await Self.send(over: session, key)
                        _ = try await operators.answer(to: "GET", "/metrics")
                        // A gateway started with this limit would accept fewer connections.
                        try await Self.lowerLimit(of: gateway)
                        let linesBefore = gateway.process.errors.text.split(separator: "\n").count
                        try await self.exhaust(gateway, operators) {
                            for _ in 1...20 { try await Self.send(over: session, key) }
                        }
                        try await Self.waitUntilServed(gateway)
                        let lines = gateway.process.errors.text.split(separator: "\n").dropFirst(linesBefore)
                        // One line per listener, not per refused connection.
                        #expect(lines.count { $0.contains("No file descriptor is left") } == 2)
                        #expect(lines.count { !$0.contains("Request answered") } < 5, "\(lines)")
                        try await Self.send(over: session, key)
                    }
                }
                try await gateway.stopInOrder()
            }
        }

        @Test("A gateway with few descriptors refuses callers before it runs out of them")
        func planned() async throws {
            try await PrivateDirectory.with { directory in
                let environment = directory.environment(["GATEWAY_EVENT_LOOPS": "1"])
                try await RunningGateway.serving(environment, descriptors: Self.descriptors) { gateway in
                    try await KeptConnection.with(port: gateway.adminPort) { operators in
                        let held = try await Self.hold(100, at: gateway.port)
                        defer { for channel in held { channel.close(promise: nil) } }
                        let metrics = try await eventually {
                            let metrics = try await operators.answer(to: "GET", "/metrics").body
                            let count = Self.rejected("too_many_connections", in: metrics)
                            // Twelve of 64 are for callers.
                            return count >= 100 - 12 ? metrics : nil
                        }
                        #expect(Self.rejected("out_of_descriptors", in: metrics) == 0)
                        let open = try #require(metrics.firstMatch(of: #/process_open_fds (\d+)/#))
                        #expect(Int(open.1) ?? .max < Self.descriptors)
                    }
                    try await Self.waitUntilServed(gateway)
                    try await gateway.stopInOrder()
                }
            }
        }

        private static func send(over session: KeptConnection, _ key: String) async throws {
            let answer = try await session.answer(
                to: "POST",
                "/v1/tenants/demo/messages",
                fields: ["Authorization": "Bearer \(key)", "Content-Type": "application/json"],
                body: #"{"token": "device"}"#
            )
            #expect(answer.status == 200, "\(answer.body)")
        }

        /// Opens connections until the gateway has no descriptor left, runs a body, and closes them.
        private func exhaust(
            _ gateway: RunningGateway,
            _ operators: KeptConnection,
            _ body: () async throws -> Void
        ) async throws {
            let held = try await Self.hold(100, at: gateway.port) + Self.hold(100, at: gateway.adminPort)
            defer { for channel in held { channel.close(promise: nil) } }
            try await wait {
                let metrics = try await operators.answer(to: "GET", "/metrics").body
                #expect(metrics.contains("process_max_fds \(Self.descriptors)\n"))
                // At most as many connections as descriptors were accepted.
                return Self.rejected("out_of_descriptors", in: metrics) >= 2 * 100 - Self.descriptors
            }
            try await body()
        }

        /// Opens connections over which nothing is sent.
        private static func hold(_ count: Int, at port: Int) async throws -> [any Channel] {
            var held: [any Channel] = []
            for _ in 1...count {
                let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(host: "127.0.0.1", port: port)
                    .get()
                held.append(channel)
            }
            return held
        }

        /// The number of connections refused for a reason.
        private static func rejected(_ reason: String, in metrics: String) -> Int {
            metrics.split(separator: "\n")
                .first { $0.hasPrefix(#"fcmgw_http_rejected_total{reason="\#(reason)"} "#) }
                .flatMap { $0.split(separator: " ").last }
                .flatMap { Int($0) } ?? 0
        }

        private static func lowerLimit(of gateway: RunningGateway) async throws {
            let arguments = ["--pid", "\(gateway.process.pid)", "--nofile=\(Self.descriptors):"]
            try await Program.run(URL(filePath: Self.limiter), arguments).expect(0)
        }

        /// Opens connections to each listener until one is served.
        private static func waitUntilServed(_ gateway: RunningGateway) async throws {
            for port in [gateway.port, gateway.adminPort] {
                let address = try SocketAddress(ipAddress: "127.0.0.1", port: port)
                // Until then a connection is closed, or refused without the request's id.
                try await wait {
                    let bytes = try await RawExchange.bytes(to: address, sending: HostileRequest.probe("again"))
                    return WireAnswer.all(in: bytes).map(\.identifier) == ["again"]
                }
            }
        }
    }
}
