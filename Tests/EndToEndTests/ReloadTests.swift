import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("SIGHUP")
    struct ReloadTests {
        private static let gauge = "fcmgw_config_last_reload_successful"

        private static func limits(_ burst: Int) -> String {
            "limits:\n  defaults:\n    device: [1/3600s:\(burst)]\n"
        }

        @Test("Other default limits hold from the next send on, with full buckets")
        func limits() async throws {
            try await PrivateDirectory.with { directory in
                try await Emulator.with { emulator in
                    let file = try directory.write(Self.limits(2), to: "gateway.yaml")
                    let environment = directory.environment()
                    try await RunningGateway.serving(environment, configuration: file) { gateway in
                        let key = try await gateway.makeTenant("shop", serverKey: "k", endpoint: emulator.address)
                        func send() async throws -> Int {
                            try await gateway.send(#"{"token": "one-device"}"#, tenant: "shop", key: key).status
                        }
                        #expect(try await gateway.metric(Self.gauge) == "1")
                        for status in [200, 200, 429] { #expect(try await send() == status) }

                        try directory.write(Self.limits(3), to: "gateway.yaml")
                        try await gateway.reload(expecting: 1)
                        for status in [200, 200, 200, 429] { #expect(try await send() == status) }

                        try directory.write("limits: {defaults: {device: [", to: "gateway.yaml")
                        try await gateway.reload(expecting: 2)
                        #expect(try await gateway.metric(Self.gauge) == "0")
                        #expect(try await send() == 429)
                        #expect(gateway.process.errors.text.contains("\(file)"))

                        try directory.write(Self.limits(4), to: "gateway.yaml")
                        try await gateway.reload(expecting: 3)
                        #expect(try await gateway.metric(Self.gauge) == "1")
                        for status in [200, 200, 200, 200, 429] { #expect(try await send() == status) }
                        try await gateway.stopInOrder()
                    }
                }
            }
        }

        @Test("Many signals in a row end nothing, also while the gateway stops")
        func manySignals() async throws {
            try await PrivateDirectory.with { directory in
                let file = try directory.write("log:\n  levels: {access: warning}\n", to: "gateway.yaml")
                let environment = directory.environment()
                try await RunningGateway.serving(environment, configuration: file) { gateway in
                    for _ in 1...10 { gateway.process.signal(SIGHUP) }
                    try await gateway.reload(expecting: 1)
                    #expect(try await Reply.to("GET", "\(gateway.adminAddress)/readyz").status == 200)
                    #expect(try await gateway.metric(Self.gauge) == "1")
                    gateway.process.signal(SIGTERM)
                    for _ in 1...10 { gateway.process.signal(SIGHUP) }
                    #expect(try await gateway.process.end() == .code(0))
                }
                try await Program.auditVerify(environment).expect(0)
            }
        }

        @Test("A second SIGTERM cuts the drain short, and the audit is whole")
        func secondSignal() async throws {
            try await PrivateDirectory.with { directory in
                let environment = directory.environment(["GATEWAY_HTTP_DRAIN_GRACE_MS": "300000"])
                try await RunningGateway.serving(environment) { gateway in
                    gateway.process.signal(SIGTERM)
                    try await wait { try await gateway.metric("fcmgw_draining") == "1" }
                    #expect(try await Reply.to("GET", "\(gateway.adminAddress)/readyz").status == 503)
                    #expect(try await Reply.to("GET", "\(gateway.address)/").headers["connection"] == "close")
                    gateway.process.signal(SIGTERM)
                    #expect(try await gateway.process.end() == .code(0))
                }
                try await Program.auditVerify(environment).expect(0)
            }
        }
    }
}
