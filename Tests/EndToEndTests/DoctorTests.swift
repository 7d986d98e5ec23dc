import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway
@testable import GatewayService

extension EndToEnd {
    @Suite("doctor", .enabled(if: SQL.isAvailable, "sqlite3 or python3 is needed"))
    struct DoctorTests {
        /// A fault, and the finding that `doctor` must report for it.
        struct Trouble: Sendable {
            let name: String
            let status: Finding.Status
            let check: Finding.Check
            let words: String
            let make: @Sendable (inout [String: String], PrivateDirectory) async throws -> Void

            init(
                _ name: String,
                _ status: Finding.Status,
                _ check: Finding.Check,
                _ words: String,
                make: @escaping @Sendable (inout [String: String], PrivateDirectory) async throws -> Void
            ) {
                (self.name, self.status, self.check, self.words, self.make) = (name, status, check, words, make)
            }

            /// A fault made by environment variables, of which nil removes one, or by statements on the store.
            init(
                _ name: String,
                _ status: Finding.Status,
                _ check: Finding.Check,
                _ words: String,
                set variables: [String: String?] = [:],
                change statements: String? = nil
            ) {
                self.init(name, status, check, words) { environment, _ in
                    for (name, value) in variables { environment[name] = value }
                    if let statements { try await SQL.change(DoctorTests.store(environment), statements) }
                }
            }
        }

        private static func store(_ environment: [String: String]) -> String {
            "\(environment["GATEWAY_DATA_DIR"] ?? "")/gateway.sqlite"
        }

        private static func certify(
            _ environment: inout [String: String],
            _ directory: PrivateDirectory,
            _ validity: Range<Double>,
            foreignKey: Bool = false
        ) throws {
            let authority = try TestAuthority()
            let identity = try authority.certify("gateway", dnsNames: ["localhost"], validity: validity)
            let other = try authority.certify("other")
            let key = foreignKey ? other.privateKey : identity.privateKey
            environment["GATEWAY_HTTP_TLS_CERTIFICATE_FILE"] = try directory.write(identity.certificate, to: "tls.crt")
            environment["GATEWAY_HTTP_TLS_PRIVATE_KEY_FILE"] = try directory.write(key, to: "tls.key")
        }

        // One fault per entry; the formatter would put each argument on its own line.
        // swift-format-ignore
        private static let troubles = [
            Trouble("An unknown variable", .problem, .configuration, "GATEWAY_HTTP_PORTT: is not known; did you mean",
                set: ["GATEWAY_HTTP_PORTT": "1"]),
            Trouble("No master key", .problem, .configuration, "GATEWAY_MASTER_KEY: is not set",
                set: ["GATEWAY_MASTER_KEY": nil]),
            Trouble("A port out of range", .problem, .configuration, "GATEWAY_HTTP_PORT: ",
                set: ["GATEWAY_HTTP_PORT": "65536"]),
            Trouble("Limits that no policy can be", .problem, .configuration, "within 30 days",
                set: ["GATEWAY_LIMITS_DEFAULTS_TOPIC": "1/1d:31"]),
            Trouble("Authorities that are not there", .problem, .configuration, "holds no certificate in PEM",
                set: ["GATEWAY_UPSTREAM_CA_FILE": "/nowhere/authorities.pem"]),
            Trouble("A secret's file that is not there", .problem, .files, "does not exist",
                set: ["GATEWAY_ADMIN_TOKEN": nil, "GATEWAY_ADMIN_TOKEN_FILE": "/nowhere/token"]),
            Trouble("A certificate that expired", .problem, .certificates, "expired") {
                try Self.certify(&$0, $1, -7_200 ..< -3_600)
            },
            Trouble("A certificate that ends soon", .warning, .certificates, "valid for 2 more days") {
                try Self.certify(&$0, $1, -3_600..<176_400)
            },
            Trouble("A certificate with another's key", .problem, .certificates, "does not belong to the certificate") {
                try Self.certify(&$0, $1, -3_600..<86_400, foreignKey: true)
            },
            Trouble("A data directory that is a file", .problem, .dataDirectory, "is not a directory") {
                $0["GATEWAY_DATA_DIR"] = try $1.write("", to: "file")
            },
            Trouble("A store of somebody else's", .problem, .store, "not a store of the gateway") { environment, _ in
                try Data(repeating: 7, count: 8_192).write(to: URL(filePath: Self.store(environment)))
            },
            Trouble("A damaged store", .problem, .store, "damaged") { environment, _ in
                let file = try #require(FileHandle(forUpdatingAtPath: Self.store(environment)))
                let size = try file.seekToEnd()
                try file.seek(toOffset: 4_096 * 2)
                try file.write(contentsOf: Data(repeating: 0xFF, count: Int(size) - 4_096 * 2))
                try file.close()
            },
            Trouble("Another master key", .problem, .store, "opens none of the 4 sealed secrets",
                set: ["GATEWAY_MASTER_KEY": RunningGateway.masterKey(9)]),
            Trouble("A master key that was changed", .warning, .store, "still sealed by the previous key",
                set: ["GATEWAY_PREVIOUS_MASTER_KEY": RunningGateway.masterKey(),
                    "GATEWAY_MASTER_KEY": RunningGateway.masterKey(9)]),
            Trouble("A previous key that is left over", .warning, .store, "is no longer needed",
                set: ["GATEWAY_PREVIOUS_MASTER_KEY": RunningGateway.masterKey(9)]),
            Trouble("A credential that does not open", .problem, .credentials, "does not open",
                change: "UPDATE credentials SET wrapped_key = zeroblob(60)"),
            Trouble("A tenant without a credential", .warning, .credentials, "has no legacy credential",
                change: "DELETE FROM credentials"),
            Trouble("A process that ended uncleanly", .warning, .audit, "ended uncleanly",
                change: "UPDATE audit_heads SET state = 'open'"),
            Trouble("An audit that was emptied", .problem, .audit, "was changed", change: """
                DELETE FROM audit_records; DELETE FROM audit_heads; DELETE FROM audit_checkpoints;
                DELETE FROM audit_truncations
                """),
        ]

        /// Makes a store with a tenant and its credential, and stops its gateway in order.
        private static func prepare(_ directory: PrivateDirectory) async throws -> [String: String] {
            let environment = directory.environment()
            try await RunningGateway.serving(environment) { gateway in
                let key = "the-shop's-server-key"
                _ = try await gateway.makeTenant("shop", serverKey: key, endpoint: "http://127.0.0.1:9")
                try await gateway.stopInOrder()
            }
            return environment
        }

        @Test("doctor reports each fault with advice and no secret, and no fault in a sound setup")
        func troubles() async throws {
            try await PrivateDirectory.with { directory in
                let good = try await Self.prepare(directory)
                let well = try await Diagnosed.by(good)
                #expect(well.end == .code(0), "\(well.text)")
                for check in [Finding.Check.configuration, .dataDirectory, .store, .audit, .credentials, .listeners] {
                    #expect(
                        !well.lines(check).isEmpty && well.lines(check).allSatisfy { $0.hasPrefix("ok") },
                        "\(well.text)"
                    )
                }
                for (number, trouble) in Self.troubles.enumerated() {
                    var environment = good
                    environment["GATEWAY_DATA_DIR"] = try directory.copy("data", to: "data-\(number)")
                    try await trouble.make(&environment, directory)
                    let found = try await Diagnosed.by(environment)
                    #expect(found.has(trouble.status, trouble.check, trouble.words), "\(trouble.name): \(found.text)")
                    if trouble.status == .problem { #expect(found.end == .code(1), "\(trouble.name)") }
                    let line = found.lines(trouble.check).first { $0.contains(trouble.words) } ?? ""
                    #expect(line.contains(" | "), "\(trouble.name): \(line)")
                    for secret in [RunningGateway.testAdminToken, RunningGateway.masterKey(), "server-key"] {
                        #expect(!found.text.contains(secret), "\(trouble.name)")
                    }
                }
            }
        }

        @Test("doctor reports too few descriptors and too little disk space")
        func resources() async throws {
            try await PrivateDirectory.with { directory in
                var environment = try await Self.prepare(directory)
                environment["GATEWAY_EVENT_LOOPS"] = "1"
                let found = try await Diagnosed.by(environment, descriptors: 200)
                #expect(found.has(.warning, .resources, "200 leave room for 70 of the "), "\(found.text)")
                #expect(found.has(.warning, .resources, "LimitNOFILE"))
                guard SmallDisk.isAvailable else { return }
                try await SmallDisk.with { disk in
                    let small = environment.merging(["GATEWAY_DATA_DIR": disk.path]) { $1 }
                    let found = try await Diagnosed.by(small)
                    #expect(found.has(.problem, .dataDirectory, "MiB are free"), "\(found.text)")
                    #expect(found.end == .code(1))
                    // A start on a full disk leaves a file without tables, which the next start fills.
                    try disk.fill()
                    try await Program.gateway(["serve"], environment: small).expect(1)
                    #expect(FileManager.default.fileExists(atPath: Self.store(small)))
                    let left = try await Diagnosed.by(small)
                    #expect(left.has(.ok, .store, "holds nothing yet"), "\(left.text)")
                }
            }
        }

        @Test("doctor asks a running gateway about credentials and recognises another program on its port")
        func running() async throws {
            try await PrivateDirectory.with { directory in
                try await Emulator.with { emulator in
                    var environment = directory.environment()
                    for name in ["LEGACY_ENDPOINT", "V1_ENDPOINT", "IID_ENDPOINT"] {
                        environment["GATEWAY_UPSTREAM_\(name)"] = emulator.address
                    }
                    environment["GATEWAY_UPSTREAM_ALLOWED_TOKEN_HOSTS"] = ""
                    let serving = environment
                    try await RunningGateway.serving(serving) { gateway in
                        _ = try await gateway.makeTenant("shop", serverKey: "k", endpoint: emulator.address)
                        var asking = serving
                        asking["GATEWAY_HTTP_PORT"] = "\(gateway.port)"
                        asking["GATEWAY_ADMIN_PORT"] = "\(gateway.adminPort)"
                        let well = try await Diagnosed.by(asking, [])
                        #expect(well.end == .code(0), "\(well.text)")
                        #expect(well.has(.ok, .listeners, "the gateway is ready"))
                        #expect(well.lines(.listeners).allSatisfy { $0.hasPrefix("ok") }, "\(well.text)")
                        #expect(well.has(.ok, .credentials, "FCM accepts it"), "\(well.text)")

                        let token = ["GATEWAY_ADMIN_TOKEN": "another-token-than-the-gateway's"]
                        let stranger = asking.merging(token) { $1 }
                        let unknown = try await Diagnosed.by(stranger, []).expect(1)
                        #expect(unknown.has(.problem, .credentials, "refuses the admin token"), "\(unknown.text)")

                        let otherKey = asking.merging(["GATEWAY_MASTER_KEY": RunningGateway.masterKey(9)]) { $1 }
                        let other = try await Diagnosed.by(otherKey)
                        #expect(other.has(.problem, .store, "was started with a different key"), "\(other.text)")

                        let elsewhere = try await Diagnosed.by(serving)
                        #expect(elsewhere.has(.warning, .listeners, "its admin listener does not answer here"))

                        try await emulator.add(
                            #"{"match": {"path": "/fcm/send"}, "times": 9, "action": {"type": "status", "status": 401}}"#
                        )
                        let refused = try await Diagnosed.by(asking, []).expect(1)
                        #expect(refused.has(.problem, .credentials, "shop, legacy"), "\(refused.text)")
                        try await emulator.deleteFaults()
                        try await gateway.stopInOrder()
                    }
                    let port = ["GATEWAY_ADMIN_PORT": emulator.port]
                    let taken = try await Diagnosed.by(environment.merging(port) { $1 }, [])
                    #expect(taken.end == .code(1))
                    #expect(taken.has(.problem, .listeners, "as no gateway does"), "\(taken.text)")
                    // doctor sends the admin token only to a gateway.
                    #expect(taken.has(.ok, .credentials, "can be opened"), "\(taken.text)")
                }
            }
        }

        @Test("An admin listener that requires a client certificate is not reported as silent")
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

        @Test("A malformed GATEWAY_ADMIN_URL is reported without its content")
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
    }
}
