import AsyncHTTPClient
import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

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

        @Test("The level of the log changes, in both directions")
        func logLevel() async throws {
            try await PrivateDirectory.with { directory in
                let file = try directory.write("log:\n  levels: {access: warning}\n", to: "gateway.yaml")
                let environment = directory.environment()
                try await RunningGateway.serving(environment, configuration: file) { gateway in
                    func answered() -> Int {
                        gateway.process.errors.text.matches(of: #/"message":"Request answered".*livez/#).count
                    }
                    let livez = "\(gateway.adminAddress)/livez"
                    _ = try await Reply.to("GET", livez)
                    #expect(answered() == 0)
                    try directory.write("log:\n  level: debug\n", to: "gateway.yaml")
                    try await gateway.reload(expecting: 1)
                    _ = try await Reply.to("GET", livez)
                    _ = try await gateway.process.errors.first { _ in answered() == 1 ? true : nil }
                    try await gateway.stopInOrder()
                }
            }
        }

        @Test("A listener's certificate is replaced under an open connection; a cut off one is not taken")
        func certificate() async throws {
            try await PrivateDirectory.with { directory in
                let (first, second) = (try TestAuthority("first"), try TestAuthority("second"))
                func write(_ authority: TestAuthority, bytes: Int = .max) throws {
                    let identity = try authority.certify("gateway", dnsNames: ["localhost"])
                    try directory.write(String(identity.certificate.prefix(bytes)), to: "s.crt")
                    try directory.write(identity.privateKey, to: "s.key")
                }
                try write(first)
                let (certificate, key) = (directory.path("s.crt"), directory.path("s.key"))
                let environment = directory.environment([
                    "GATEWAY_HTTP_TLS_CERTIFICATE_FILE": certificate, "GATEWAY_HTTP_TLS_PRIVATE_KEY_FILE": key,
                ])
                try await RunningGateway.serving(environment, scheme: "https") { gateway in
                    func status(_ client: HTTPClient) async throws -> Int {
                        try await Reply.to("GET", "\(gateway.address)/v1/tenants/a/audit", by: client).status
                    }
                    func isTrusted(_ authority: TestAuthority) async throws -> Bool {
                        try await CertifiedClient.with(nil, trusting: authority.certificate) { client in
                            (try? await status(client)) == 401
                        }
                    }
                    try await CertifiedClient.with(nil, trusting: first.certificate) { open in
                        #expect(try await status(open) == 401)
                        try write(second, bytes: 400)
                        try await gateway.reload(expecting: 1)
                        #expect(try await gateway.metric(Self.gauge) == "0")
                        #expect(try await isTrusted(first))

                        try write(second)
                        try await gateway.reload(expecting: 2)
                        #expect(try await gateway.metric(Self.gauge) == "1")
                        #expect(try await isTrusted(second))
                        #expect(try await !isTrusted(first))
                        // It trusts the first authority alone, so this is the connection of before.
                        #expect(try await status(open) == 401)
                    }
                    try await gateway.stopInOrder()
                }
            }
        }

        @Test("serve names a bad certificate's file and key, and leaves nothing behind")
        func badStart() async throws {
            try await PrivateDirectory.with { directory in
                let identity = try TestAuthority().certify("gateway")
                let certificate = try directory.write(String(identity.certificate.prefix(300)), to: "s.crt")
                let key = try directory.write(identity.privateKey, to: "s.key")
                let yaml = "admin:\n  tls:\n    certificateFile: \(certificate)\n    privateKeyFile: \(key)\n"
                let file = try directory.write(yaml, to: "gateway.yaml")
                let environment = directory.environment()
                let outcome = try await Program.gateway(["serve", "--config", file], environment: environment).expect(1)
                #expect(
                    outcome.errors
                        == "\(file):3: admin.tls.certificateFile: \(certificate) holds no certificate in PEM, or one that is cut off\n"
                )
                #expect(!FileManager.default.fileExists(atPath: directory.path("data")))
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
