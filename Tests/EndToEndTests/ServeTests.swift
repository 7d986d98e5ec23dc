import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway
@testable import GatewayService

extension EndToEnd {
    @Suite("serve")
    struct ServeTests {
        @Test("Without its secrets serve does not start and leaves nothing behind")
        func missingSecrets() async throws {
            try await PrivateDirectory.with { directory in
                let environment = directory.environment(["GATEWAY_MASTER_KEY": nil, "GATEWAY_ADMIN_TOKEN": nil])
                let outcome = try await Program.gateway(["serve"], environment: environment).expect(1)
                for name in ["GATEWAY_MASTER_KEY", "GATEWAY_ADMIN_TOKEN"] { #expect(outcome.errors.contains(name)) }
                #expect(!FileManager.default.fileExists(atPath: directory.path("data")))
            }
        }

        @Test(
            "serve and config check report a bad setting's place and key, and leave nothing behind",
            arguments: [
                ("http:\n  host: 127.0.0.1\n  port: 80a", [:], "gateway.yaml:3: http.port"),
                ("htpp:\n  port: 1", [:], "gateway.yaml:1: htpp"),
                ("audit:\n  mode: lax", [:], "gateway.yaml:2: audit.mode"),
                ("upstream:\n  caFile: /none.pem", [:], "gateway.yaml:2: upstream.caFile"),
                ("limits:\n  redisCaFile: /none.pem", [:], "gateway.yaml:2: limits.redisCaFile"),
                ("tracing:\n  caFile: /none.pem", [:], "gateway.yaml:2: tracing.caFile"),
                ("log:\n  level: info", ["GATEWAY_UPSTREAM_TIMEOUT_MS": "soon"], "GATEWAY_UPSTREAM_TIMEOUT_MS"),
                ("log:\n  level: info", ["GATEWAY_MASTER_KEY": "c2hvcnQ="], "GATEWAY_MASTER_KEY"),
                ("http:\n  tls:\n    certificateFile: /none.pem", [:], "gateway.yaml:3: http.tls.certificateFile"),
                (
                    "http:\n  tls:\n    certificateFile: /none.pem\n    privateKeyFile: /none.key", [:],
                    "gateway.yaml:3: http.tls.certificateFile"
                ),
                ("limits:\n  defaults:\n    tenant: [1/36000s:1000]", [:], "limits.defaults.tenant"),
            ] as [(String, [String: String], String)]
        )
        func badConfiguration(yaml: String, variables: [String: String], place: String) async throws {
            try await PrivateDirectory.with { directory in
                let file = try directory.write(yaml, to: "gateway.yaml")
                let environment = directory.environment(["GATEWAY_HTTP_PORT": nil]).merging(variables) { $1 }
                for verb in [["serve"], ["config", "check"]] {
                    let arguments = verb + ["--config", file]
                    let outcome = try await Program.gateway(arguments, environment: environment).expect(1, "\(verb)")
                    #expect(outcome.errors.contains(place), "\(outcome.errors)")
                    #expect(!outcome.errors.contains("c2hvcnQ="))
                }
                #expect(!FileManager.default.fileExists(atPath: directory.path("data")))
            }
        }

        @Test("The first scrape of a new gateway has labelled series for panels and alerts")
        func firstScrape() async throws {
            try await PrivateDirectory.with { directory in
                try await RunningGateway.serving(directory.environment()) { gateway in
                    let metrics = try await gateway.metrics()
                    for name in [
                        "messages_total", "subscription_changes_total", "device_group_requests_total",
                        "http_rejected_total", "retired_token_spike_active", "breaker_state",
                    ] {
                        #expect(metrics.contains("\nfcmgw_\(name){"), "\(name)")
                    }
                    #expect(metrics.contains("\nfcmgw_audit_checkpoint_interval_seconds 60\n"))
                    try await gateway.stopInOrder()
                }
            }
        }

        @Test("After a restart limits start full, and no file holds their state")
        func quotas() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                func send(_ dev: DevGateway) async throws -> Int { try await dev.send(#"{"token": "used"}"#).status }
                try await DevGateway.with(data) { dev in
                    // One an hour, so that nothing refills during the test.
                    let policy = #"{"device": [{"rate": 1, "per_s": 3600, "burst": 1}]}"#
                    #expect(try await dev.gateway.admin("PUT", "tenants/demo/limits", policy).status == 200)
                    #expect(try await send(dev) == 200)
                    #expect(try await send(dev) == 429)
                    try await dev.gateway.stopInOrder()
                }
                let files = try FileManager.default.contentsOfDirectory(atPath: data)
                #expect(!files.contains { $0.hasSuffix(".limits") })
                try await DevGateway.with(data) { dev in
                    let again = [try await send(dev), try await send(dev)]
                    #expect(again == [200, 429])
                }
            }
        }

        @Test("serve, config check and doctor warn of public listeners without TLS, serve of readable secret files")
        func warnings() async throws {
            try await PrivateDirectory.with { directory in
                let key = try directory.write(RunningGateway.masterKey(), to: "master.key")
                try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: directory.path)
                try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
                let environment = directory.environment([
                    "GATEWAY_HTTP_HOST": "0.0.0.0", "GATEWAY_ADMIN_HOST": "0.0.0.0", "GATEWAY_MASTER_KEY": nil,
                    "GATEWAY_MASTER_KEY_FILE": key,
                ])
                let places = ["http.host", "admin.host"]
                try await RunningGateway.serving(environment) { gateway in
                    try await gateway.stopInOrder()
                    let text = gateway.process.errors.text
                    for place in places {
                        #expect(text.contains("\"\(place)") || text.contains(place.variable), "\(text)")
                    }
                    #expect(text.contains("A file is not protected from other users.") && text.contains(key), "\(text)")
                }
                let checked = try await Program.gateway(["config", "check"], environment: environment).expect(0)
                let found = try await Diagnosed.by(environment)
                for place in places {
                    #expect(checked.errors.contains(place.variable), "\(checked.text)")
                    #expect(found.text.contains(place.variable), "\(found.text)")
                }
            }
        }

        @Test("The log reports start, listeners and shutdown in four lines, with numbers as JSON numbers")
        func startAndStop() async throws {
            try await PrivateDirectory.with { directory in
                let file = try directory.write("audit:\n  mode: strict\n", to: "gateway.yaml")
                let environment = directory.environment()
                try await RunningGateway.serving(environment, configuration: file) { gateway in
                    try await gateway.stopInOrder()
                    func line(_ message: String) throws -> JSON {
                        let lines = gateway.process.errors.text.split(separator: "\n")
                            .compactMap { try? JSON(parsing: $0) }
                            .filter { $0["message"]?.text == message }
                        #expect(lines.count == 1, "\(message)")
                        return try #require(lines.first)
                    }
                    let starting = try line("Starting.")
                    #expect(starting["version"]?.text == GatewayVersion.current)
                    #expect(starting["configuration"]?.text == file)
                    #expect(starting["store"]?.text == "sqlite:\(directory.path("data"))/gateway.sqlite")
                    #expect(starting["data_dir"]?.text == directory.path("data"))
                    #expect(starting["audit_mode"]?.text == "strict")
                    let serving = try line("Serving.")
                    #expect(serving["data_listener"]?.text == gateway.address)
                    #expect(serving["admin_listener"]?.text == gateway.adminAddress)
                    #expect(serving["tenants"]?.int == 0 && serving["keys"]?.int == 0)
                    #expect(serving["replica"] == nil)
                    #expect(try line("Stopping.")["signal"]?.text == "SIGTERM")
                    let stopped = try line("Stopped.")
                    #expect(stopped["signal"]?.text == "SIGTERM" && stopped["duration_ms"]?.int != nil)
                    for name in ["requests_cut_off", "audit_records_in_spool", "audit_records_lost"] {
                        #expect(stopped[name]?.int == 0, "\(name)")
                    }
                    #expect(gateway.process.errors.text.split(separator: "\n").count == 4)
                }
            }
        }

        /// Signals a gateway while it starts, and returns how it ended.
        private static func end(of environment: [String: String], by signal: Int32) async throws -> ChildProcess.End {
            try await ChildProcess.with(Program.gateway(), ["serve"], environment: environment) { process in
                _ = try await process.errors.first { $0.contains(#""message":"Starting.""#) ? true : nil }
                process.signal(signal)
                let end = try await process.end()
                #expect(!process.errors.text.contains("Serving."))
                return end
            }
        }

        @Test(
            "A signal during the start ends the gateway with exit code 0",
            .enabled(if: StoreHold.isAvailable),
            arguments: [SIGTERM, SIGINT]
        )
        func forcedShutdown(signal: Int32) async throws {
            try await PrivateDirectory.with { directory in
                var environment = directory.environment()
                try await RunningGateway.serving(environment) { try await $0.stopInOrder() }
                environment["GATEWAY_LOG_LEVEL"] = "debug"
                // A start gives up on the locked store after two seconds, which may pass before the signal.
                let ends = try await StoreHold.on(directory.path("data")) {
                    var ends: [ChildProcess.End] = []
                    while ends.count < 5, ends.last != .code(0) {
                        ends.append(try await Self.end(of: environment, by: signal))
                    }
                    return ends
                }
                #expect(ends.last == .code(0))
            }
        }

        @Test("A port in use is reported with its variable", arguments: ["GATEWAY_HTTP_PORT", "GATEWAY_ADMIN_PORT"])
        func takenPort(variable: String) async throws {
            try await PrivateDirectory.with { directory in
                try await RunningGateway.serving(directory.environment()) { gateway in
                    var second = RunningGateway.environment(dataDirectory: directory.path("second"))
                    let port = "\(variable == "GATEWAY_HTTP_PORT" ? gateway.port : gateway.adminPort)"
                    second[variable] = port
                    let outcome = try await Program.gateway(["serve"], environment: second).expect(1)
                    let said = "\(variable): another program listens on 127.0.0.1:\(port) already\n"
                    #expect(outcome.errors.hasSuffix(said), "\(outcome.errors)")
                    try await Program.auditVerify(second).expect(0)
                }
            }
        }

        @Test("An unusable address or data directory is reported with the reason")
        func impossiblePlaces() async throws {
            try await PrivateDirectory.with { directory in
                let file = try directory.write("", to: "file")
                for (variable, value, said) in [
                    (
                        "GATEWAY_HTTP_HOST", "192.0.2.1",
                        "GATEWAY_HTTP_HOST: 192.0.2.1 is not an address of this machine"
                    ),
                    ("GATEWAY_ADMIN_HOST", "a..b", "GATEWAY_ADMIN_HOST: a..b can't be looked up"),
                    (
                        "GATEWAY_DATA_DIR", "\(file)/data",
                        "fcm-gateway: The directory \(file)/data can't be made: Not a directory"
                    ),
                ] {
                    let environment = directory.environment([variable: value])
                    let outcome = try await Program.gateway(["serve"], environment: environment).expect(1)
                    #expect(outcome.errors.hasSuffix("\(said)\n"), "\(outcome.errors)")
                }
            }
        }

        @Test("dev and the emulator report a port in use")
        func takenEmulatorPort() async throws {
            try await PrivateDirectory.with { directory in
                try await Emulator.with { emulator in
                    let port = emulator.port
                    let ports = ["--port", "0", "--admin-port", "0", "--emulator-port", port]
                    let dev = ["dev", "--data-dir", directory.path("data")] + ports
                    for arguments in [["emulator", "--port", port], dev] {
                        let outcome = try await Program.run(Program.development(), arguments).expect(1)
                        #expect(outcome.errors.contains("127.0.0.1:\(port)"), "\(outcome.errors)")
                        #expect(outcome.errors.contains("Address already in use"), "\(outcome.errors)")
                    }
                    #expect(try await Program.auditVerify(directory.path("data")).end == .code(0))
                }
            }
        }

        @Test("A store is served by one gateway at a time and opens only with its own master key")
        func oneStore() async throws {
            try await PrivateDirectory.with { directory in
                let environment = directory.environment()
                try await RunningGateway.serving(environment) { gateway in
                    let second = try await Program.gateway(["serve"], environment: environment).expect(1)
                    #expect(second.errors.contains("Another gateway process serves this store"))
                    #expect(second.errors.contains(directory.path("data/gateway.sqlite")))
                    #expect(try await Reply.to("GET", "\(gateway.adminAddress)/readyz").status == 200)
                    try await gateway.stopInOrder()
                }
                var foreign = environment
                foreign["GATEWAY_MASTER_KEY"] = RunningGateway.masterKey(8)
                let refused = try await Program.gateway(["serve"], environment: foreign).expect(1)
                #expect(refused.errors.contains("The store was made with another master key"))
                #expect(!refused.errors.contains(RunningGateway.masterKey(8)))

                // The refusals changed nothing.
                try await RunningGateway.serving(environment) { try await $0.stopInOrder() }
                try await Program.auditVerify(environment).expect(0)
            }
        }
    }
}

extension String {
    /// The variable of a configuration key.
    fileprivate var variable: String { "GATEWAY_" + self.replacing(".", with: "_").uppercased() }
}
