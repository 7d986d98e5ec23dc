import CoreMetrics
import EventLoopHTTP
import Foundation
import GatewayCore
import GatewayTestKit
import GatewayUpstream
import HTTPTypes
import InMemoryLogging
import Logging
import Metrics
import NIOCore
import NIOPosix
import PrometheusMetrics
import Testing

@testable import GatewayService

/// A reloader of idle parts, and the files that it reads.
struct ReloadFixture {
    let directory: TemporaryDirectory
    let clock = ManualClock(at: SystemWallClock().now())
    let logs = InMemoryLogHandler()
    let registry = PrometheusRegistry()
    let gatewayDirectory: Directory
    let upstream: UpstreamSettings
    let logLevel: LogLevelSetting
    let reloader: ConfigurationReloader

    /// Runs a body with a reloader started with a file.
    static func with(
        _ yaml: (TemporaryDirectory) throws -> String,
        _ body: @Sendable (ReloadFixture) async throws -> Void
    ) async throws {
        try await TemporaryDirectory.with { directory in
            let fixture = try await ReloadFixture(directory, yaml(directory))
            try await fixture.gatewayDirectory.whileRunning { try await body(fixture) }
        }
    }

    private init(_ directory: TemporaryDirectory, _ yaml: String) async throws {
        self.directory = directory
        let file = try directory.file("gateway.yaml", yaml)
        let read = { @Sendable () throws(ConfigurationProblems) -> LoadedConfiguration in
            try LoadedConfiguration.read(ConfigurationInput(file: file, environment: Self.environment)).0
        }
        let started = try read()
        self.gatewayDirectory = try await .sample(
            store: TestDatabase(tenants: ["acme"]).directoryStore,
            defaultLimits: started.configuration.limits.defaults
        )
        self.upstream = UpstreamSettings(started.configuration.upstream)
        self.logLevel = LogLevelSetting(started.configuration.log)
        let logs = self.logs
        let logger = Logger(label: "test") { _ in logs }
        func server(_ certificate: ListenerCertificate?) -> HTTPServer {
            HTTPServer(
                configuration: HTTPServerConfiguration(tls: certificate?.configuration),
                responder: SilentResponder(),
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
                logger: logger
            )
        }
        let lastReload = Meter(label: "fcmgw_config_last_reload_successful", factory: self.registry)
        lastReload.set(1)
        self.reloader = ConfigurationReloader(
            started: started,
            parts: ConfigurationReloader.Parts(
                directory: self.gatewayDirectory,
                dataServer: server(started.certificates.data),
                adminServer: server(started.certificates.admin),
                upstream: self.upstream,
                lastReload: lastReload
            ),
            logLevel: self.logLevel,
            clock: self.clock,
            logger: logger,
            load: read
        )
    }

    static let environment = [
        "GATEWAY_MASTER_KEY": Data(repeating: 7, count: 32).base64EncodedString(),
        "GATEWAY_ADMIN_TOKEN": "admin-token-of-the-tests-0123456789", "GATEWAY_LOG_FORMAT": "text",
    ]

    /// Replaces the file and reloads; returns the gauge's value.
    func reload(_ yaml: String? = nil) async -> Int? {
        if let yaml {
            #expect(throws: Never.self) { _ = try self.directory.file("gateway.yaml", yaml) }
        }
        await self.reloader.reload()
        return self.gauge
    }

    var gauge: Int? {
        String(decoding: self.registry.renderBytes(), as: UTF8.self)
            .firstMatch(of: #/fcmgw_config_last_reload_successful (\d)/#)
            .flatMap { Int($0.1) }
    }

    /// The limits in force for a tenant without its own.
    var limits: LimitPolicies? { self.gatewayDirectory.snapshot.tenants.values.first?.limits }

    /// The log, one entry per line.
    var logText: String {
        self.logs.entries
            .map { entry in
                let metadata = entry.metadata.map { "\($0.key)=\($0.value)" }.sorted().joined(separator: " ")
                return "\(entry.level) \(entry.message) \(metadata)"
            }
            .joined(separator: "\n")
    }
}

/// A listener's certificate, key and client authority as files.
struct CertificateFiles {
    let directory: TemporaryDirectory

    /// Writes the files and returns their settings.
    @discardableResult
    func write(_ identity: TestIdentity, clientAuthority: String? = nil) throws -> GatewayConfiguration.TLSFiles {
        GatewayConfiguration.TLSFiles(
            certificateFile: try self.directory.file("server.crt", identity.certificate),
            privateKeyFile: try self.directory.file("server.key", identity.privateKey),
            clientCAFile: try clientAuthority.map { try self.directory.file("clients.crt", $0) }
        )
    }
}

private struct SilentResponder: HTTPServerResponder {
    func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        HTTPServerResponse(status: .noContent)
    }
}
