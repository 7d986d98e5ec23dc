import Foundation
import NIOCore
import NIOPosix
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("File descriptors")
    struct DescriptorTests {
        private static let descriptors = 64

        @Test("When all are taken, sessions that are open are served, and callers come in again once some are free")
        func exhausted() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    var environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                    environment["GATEWAY_EVENT_LOOPS"] = "1"
                    environment["GATEWAY_HTTP_HEAD_TIMEOUT_MS"] = "60000"
                    try await RunningGateway.serving(environment, descriptors: Self.descriptors) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "key", endpoint: emulator.address)
                        try await KeptConnection.with(port: gateway.port) { session in
                            try await KeptConnection.with(port: gateway.adminPort) { operators in
                                // The call to FCM leaves a connection open behind it.
                                try await Self.send(over: session, key)
                                _ = try await operators.answer(to: "GET", "/metrics")
                                let linesBefore = gateway.process.errors.text.split(separator: "\n").count
                                try await self.exhaust(gateway, operators) {
                                    for _ in 1...20 { try await Self.send(over: session, key) }
                                }
                                try await Self.waitUntilServed(gateway)
                                let lines = gateway.process.errors.text.split(separator: "\n").dropFirst(linesBefore)
                                // One line for each listener, however many were turned away.
                                #expect(lines.count { $0.contains("No file descriptor is left") } == 2)
                                #expect(lines.count { !$0.contains("Request answered") } < 5, "\(lines)")
                                try await Self.send(over: session, key)
                            }
                        }
                        try await gateway.stopInOrder()
                    }
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
            var held: [any Channel] = []
            defer { for channel in held { channel.close(promise: nil) } }
            for port in [gateway.port, gateway.adminPort] {
                for _ in 1...100 {
                    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                        .connect(host: "127.0.0.1", port: port)
                        .get()
                    held.append(channel)
                }
            }
            try await wait {
                let metrics = try await operators.answer(to: "GET", "/metrics").body
                let count = metrics.firstMatch(of: #/http_rejected_total\{reason="out_of_descriptors"\} (\d+)/#)
                // The first to come were let in, and they alone.
                #expect(metrics.contains("process_max_fds \(Self.descriptors)\n"))
                return count.flatMap { Int($0.1) } ?? 0 >= 2 * 100 - Self.descriptors
            }
            try await body()
        }

        /// Tries a new connection until it is served.
        private static func waitUntilServed(_ gateway: RunningGateway) async throws {
            for port in [gateway.port, gateway.adminPort] {
                let address = try SocketAddress(ipAddress: "127.0.0.1", port: port)
                let answers = try await eventually {
                    let bytes = try await RawExchange.bytes(to: address, sending: HostileRequest.probe("again"))
                    let answers = WireAnswer.all(in: bytes)
                    return answers.isEmpty ? nil : answers
                }
                #expect(answers.map(\.identifier) == ["again"])
            }
        }
    }
}
