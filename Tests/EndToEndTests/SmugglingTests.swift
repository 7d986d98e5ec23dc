import NIOCore
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Smuggling")
    struct SmugglingTests {
        @Test("Both listeners refuse or answer each hostile request as the table says")
        func direct() async throws {
            let table = try HostileRequest.all()
            #expect(table.count > 150)
            try await PrivateDirectory.with { directory in
                let environment = directory.environment()
                try await RunningGateway.serving(environment) { gateway in
                    let before = try await gateway.rejections()
                    for (listener, port) in [("data", gateway.port), ("admin", gateway.adminPort)] {
                        let address = try SocketAddress(ipAddress: "127.0.0.1", port: port)
                        for (number, entry) in table.enumerated() {
                            let suffix = "\(listener)-\(number)"
                            let bytes = entry.bytes(suffix) + HostileRequest.probe("probe-\(suffix)")
                            let answers = WireAnswer.all(in: try await RawExchange.bytes(to: address, sending: bytes))
                            Self.check(answers, entry, suffix)
                        }
                    }
                    let refused = table.count { $0.refused != nil }
                    #expect(try await gateway.rejections() - before == 2 * refused)
                }
            }
        }

        private static func check(_ answers: [WireAnswer], _ entry: HostileRequest, _ suffix: String) {
            let what: Comment = "\(entry.topic), \(entry.name), \(suffix): \(answers)"
            var identifiers = (entry.answered ?? []).map { "\($0)-\(suffix)" }
            if let status = entry.refused {
                // A refusal has no request id, because the request isn't trusted.
                identifiers.append("")
                #expect(answers.last?.status == status, what)
            } else if entry.closes != true {
                identifiers.append("probe-\(suffix)")
            }
            #expect(answers.map(\.identifier) == identifiers, what)
        }

        @Test("A proxy and the gateway behind it never read a request differently", arguments: FrontProxy.Kind.allCases)
        func behind(kind: FrontProxy.Kind) async throws {
            let table = try HostileRequest.all()
            try await PrivateDirectory.with { directory in
                let environment = directory.environment(["GATEWAY_EVENT_LOOPS": "1"])
                try await RunningGateway.serving(environment) { gateway in
                    try await FrontProxy.with(kind, before: gateway.port, in: directory) { front in
                        let logs = FrontLogs(front, gateway)
                        _ = try await logs.exchange([], "first")
                        var passed = 0
                        var ports: Set<Substring?> = []
                        for (number, entry) in table.enumerated() {
                            let suffix = "\(number)"
                            let exchange = try await logs.exchange(entry.bytes(suffix), suffix)
                            let what: Comment = "\(entry.topic), \(entry.name): \(exchange)"
                            #expect(exchange.disagreements == [], what)
                            passed += exchange.passed.count
                            ports.formUnion(exchange.logged.filter(\.wentOn).map(\.port))
                        }
                        // One of the two refuses most of the table; the rest must have been served.
                        #expect(passed > table.count)
                        // The proxy reuses connections; otherwise nothing could be smuggled.
                        #expect(ports.count < passed)
                        #expect(kind != .haproxy || ports.count > 1)
                    }
                }
            }
        }
    }
}
