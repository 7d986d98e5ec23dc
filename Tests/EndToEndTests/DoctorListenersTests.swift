import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("doctor on listeners and on what it can't try")
    struct DoctorListenersTests {
        @Test("A gateway whose admin listener wants a client's certificate is not called silent")
        func clientCertificates() async throws {
            try await PrivateDirectory.with { directory in
                let authority = try TestAuthority()
                let server = try authority.certify("gateway", dnsNames: ["localhost"])
                var environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                environment["GATEWAY_ADMIN_TLS_CERTIFICATE_FILE"] = try directory.write(server.certificate, to: "s.crt")
                environment["GATEWAY_ADMIN_TLS_PRIVATE_KEY_FILE"] = try directory.write(server.privateKey, to: "s.key")
                environment["GATEWAY_ADMIN_TLS_CLIENT_CA_FILE"] = try directory.write(
                    authority.certificate,
                    to: "ca.crt"
                )
                let serving = environment
                try await ChildProcess.with(Program.gateway(), ["serve"], environment: serving) { process in
                    let ports = try await process.errors.first { text in
                        let lines = text.matches(
                            of: #/"message":"Listening\.".*"listener":"(data|admin)".*"port":"(\d+)"/#
                        )
                        let ports = Dictionary(lines.map { (String($0.1), String($0.2)) }) { $1 }
                        return ports.count == 2 ? ports : nil
                    }
                    var asking = serving
                    asking["GATEWAY_HTTP_PORT"] = ports["data"]
                    asking["GATEWAY_ADMIN_PORT"] = ports["admin"]
                    let found = try await Diagnosed.by(asking)
                    #expect(found.end == .code(0), "\(found.text)")
                    #expect(found.has(.ok, .listeners, "admin.tls.clientCaFile asks for client certificates"))
                    #expect(found.lines(.listeners).allSatisfy { $0.hasPrefix("ok") }, "\(found.text)")
                    #expect(found.lines(.listeners).count == 1, "\(found.text)")
                    process.signal(SIGTERM)
                    #expect(try await process.end() == .code(0))
                }
            }
        }

        @Test("A malformed GATEWAY_ADMIN_URL is reported, without what it holds")
        func malformedAddress() async throws {
            try await PrivateDirectory.with { directory in
                var environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                environment["GATEWAY_ADMIN_URL"] = "http://operator:the-password@gateway:8081"
                let found = try await Diagnosed.by(environment)
                #expect(found.end == .code(1))
                #expect(
                    found.has(.problem, .listeners, "is not an address such as http://127.0.0.1:8081"),
                    "\(found.text)"
                )
                #expect(!found.text.contains("the-password"))
                environment["GATEWAY_ADMIN_URL"] = "http://127.0.0.1:1"
                #expect(try await Diagnosed.by(environment).end == .code(0))
            }
        }

        @Test("Without the master key, credentials are not said to open")
        func noMasterKey() async throws {
            try await PrivateDirectory.with { directory in
                var environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                try await RunningGateway.serving(environment) { gateway in
                    _ = try await gateway.makeTenant("shop", serverKey: "the-key", endpoint: "http://127.0.0.1:9")
                    try await gateway.stopInOrder()
                }
                #expect(try await Diagnosed.by(environment).has(.ok, .credentials, "is sealed and can be opened"))
                environment["GATEWAY_MASTER_KEY"] = nil
                let found = try await Diagnosed.by(environment)
                #expect(found.has(.ok, .credentials, "is sealed; whether it opens was not tried"), "\(found.text)")
                #expect(!found.text.contains("can be opened"))
            }
        }
    }
}
