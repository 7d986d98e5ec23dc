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
                let environment = directory.environment(try directory.tls("ADMIN", server, clients: authority))
                try await ChildProcess.with(Program.gateway(), ["serve"], environment: environment) { process in
                    let ports = try await RunningGateway.ports(process)
                    let own = ["GATEWAY_HTTP_PORT": ports.data, "GATEWAY_ADMIN_PORT": ports.admin]
                    let asking = environment.merging(own) { $1 }
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
                var environment = directory.environment()
                environment["GATEWAY_ADMIN_URL"] = "http://operator:the-password@gateway:8081"
                let found = try await Diagnosed.by(environment).expect(1)
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
                var environment = directory.environment()
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
