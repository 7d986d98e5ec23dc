#if os(Linux)
import Foundation
import ProcessTestKit
import Testing

@testable import GatewayService

extension EndToEnd {
    @Suite("Memory of the process")
    struct CrashTests {
        private static let masterKey = Array(UInt8(150)...UInt8(181))
        private static let serverKey = "canary-server-key-8c1f0e"
        private static let adminToken = "canary-admin-token-55aa01-0123456789"

        /// Runs a body with a gateway that holds secrets and has just used them.
        private func withSecrets(
            _ variables: [String: String] = [:],
            _ body: (RunningGateway, PrivateDirectory, [Canary]) async throws -> Void
        ) async throws {
            let masterKey = Data(Self.masterKey).base64EncodedString()
            let settings = ["GATEWAY_MASTER_KEY": masterKey, "GATEWAY_ADMIN_TOKEN": Self.adminToken]
            try await Site.with(settings.merging(variables) { $1 }, serverKey: Self.serverKey) { site in
                #expect(try await site.send(#"{"token": "canary-token-91d3"}"#).status == 200)
                let canaries = [
                    Canary("master key", bytes: Self.masterKey), Canary("server key", Self.serverKey),
                    Canary("admin token", Self.adminToken), Canary("token", "canary-token-91d3"),
                    Canary("API key", String(site.key.split(separator: "_")[2])),
                ]
                try await body(site.gateway, site.directory, canaries)
            }
        }

        @Test(
            "A crash leaves neither a core dump nor registers nor secrets behind",
            arguments: [
                (SIGSEGV, [:]), (SIGABRT, [:]), (SIGILL, [:]),
                (SIGBUS, ["SWIFT_BACKTRACE": "enable=yes,registers=all,interactive=yes,color=no"]),
            ] as [(Int32, [String: String])]
        )
        func crash(signal: Int32, variables: [String: String]) async throws {
            try await self.withSecrets(variables) { gateway, directory, canaries in
                let logged = gateway.process.errors.bytes.count
                gateway.process.signal(signal)
                // A backtrace ends with this line; without a backtracer the process just ends.
                _ = try? await gateway.process.errors.first { $0.contains("Backtrace took") ? true : nil }
                try await gateway.kill()
                let said = gateway.process.errors.bytes.dropFirst(logged) + gateway.process.output.bytes
                let text = String(decoding: said, as: UTF8.self)
                #expect(text.firstMatch(of: #/(?m)^ *(rax|rsp|x0|sp) 0x/#) == nil, "\(text)")
                #expect(!text.contains("Registers:"))
                for canary in canaries { #expect(!canary.isIn(Data(said)), "\(canary.name)") }
                for folder in [directory.path("data"), FileManager.default.currentDirectoryPath] {
                    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
                    #expect(!names.contains { $0 == "core" || $0.hasPrefix("core.") })
                }
            }
        }

        @Test("Other processes of its user can't read its memory, core dumps are off, and process metrics work")
        func unreadable() async throws {
            try await self.withSecrets { gateway, _, _ in
                let folder = "/proc/\(gateway.process.pid)"
                // Files in /proc that only root may read belong to root.
                for name in ["mem", "environ", "maps", "fd"] {
                    let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")
                    #expect(attributes[.ownerAccountID] as? Int == 0, "\(name)")
                }
                let limits = try String(contentsOfFile: "\(folder)/limits", encoding: .utf8)
                #expect(limits.firstMatch(of: #/Max core file size +0 +0 /#) != nil)
                let metrics = try await gateway.metrics()
                for name in ["process_open_fds", "process_resident_memory_bytes", "process_cpu_seconds_total"] {
                    #expect(metrics.contains("\n\(name) "), "\(name)")
                }
                try await gateway.stopInOrder()
            }
        }
    }
}
#endif
