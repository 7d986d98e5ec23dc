import AsyncHTTPClient
import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("Client certificates")
    struct MutualTLSTests {
        private func send(to gateway: RunningGateway, _ key: String, by client: HTTPClient) async throws -> Int {
            let path = "/v1/tenants/shop/messages"
            return try await gateway.ask("POST", path, key: key, #"{"token": "device"}"#, by: client).status
        }

        private func run(
            _ body: (RunningGateway, _ key: String, _ authority: TestAuthority, PrivateDirectory) async throws -> Void
        ) async throws {
            try await PrivateDirectory.with { directory in
                try await Emulator.with { emulator in
                    let authority = try TestAuthority()
                    let server = try TestAuthority("servers").certify("gateway", dnsNames: ["localhost"])
                    let environment = directory.environment(try directory.tls("HTTP", server, clients: authority))
                    try await RunningGateway.serving(environment, scheme: "https") { gateway in
                        let key = try await gateway.makeTenant("shop", serverKey: "k", endpoint: emulator.address)
                        let names = #"{"client_names": ["orders.internal"]}"#
                        #expect(try await gateway.admin("PATCH", "tenants/shop", names).status == 200)
                        try await body(gateway, key, authority, directory)
                        try await gateway.stopInOrder()
                    }
                }
            }
        }

        @Test("SIGHUP applies a new client authority to new connections; removing a client name applies at once")
        func authorityReload() async throws {
            try await self.run { gateway, key, authority, directory in
                let renewed = try TestAuthority()
                let name = "orders.internal"
                func send(by client: HTTPClient) async throws -> Int {
                    try await self.send(to: gateway, key, by: client)
                }
                for validity in [-2_000.0..<(-1_000), -1_000..<1_000] {
                    let identity = try authority.certify("client", dnsNames: [name], validity: validity)
                    let status = try await CertifiedClient.with(identity) { try? await send(by: $0) }
                    #expect(status == (validity.contains(0) ? 200 : nil))
                }
                try await CertifiedClient.with(authority.certify("client", dnsNames: [name])) { old in
                    #expect(try await send(by: old) == 200)
                    try directory.write(renewed.certificate, to: "ca.crt")
                    try await gateway.reload(expecting: 1)
                    // An open connection keeps the identity that its handshake established.
                    #expect(try await send(by: old) == 200)
                }
                try await CertifiedClient.with(authority.certify("client", dnsNames: [name])) { stranger in
                    let status = try? await send(by: stranger)
                    #expect(status == nil)
                }
                try await CertifiedClient.with(renewed.certify("client", dnsNames: [name])) { new in
                    let status = try await send(by: new)
                    #expect(status == 200)
                    // Removing the client name applies at once, also on open connections.
                    let other = #"{"client_names": ["billing.internal"]}"#
                    #expect(try await gateway.admin("PATCH", "tenants/shop", other).status == 200)
                    #expect(try await send(by: new) == 401)
                }
            }
        }
    }
}
