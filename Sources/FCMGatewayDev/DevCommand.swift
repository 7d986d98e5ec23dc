import ArgumentParser
import EventLoopHTTP
import FCMEmulator
import GatewayCore
import GatewayService
import GatewayUpstream
import Logging
import ServiceLifecycle
import UnixSignals

/// `dev`: a gateway to try, with a fake FCM behind it and a tenant that can send.
struct DevCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dev",
        abstract: "Run a trial gateway with a fake FCM behind it.",
        usage: "fcm-gateway-dev dev [OPTIONS]",
        discussion: """
            The first start creates everything in the data directory: secrets, store, the tenant demo and \
            its key. Not for production: the secrets lie beside the data that they protect. Variables that configure a \
            gateway, GATEWAY_…, are ignored.

            Example:
              fcm-gateway-dev dev --port 8090
            """
    )

    @Option(name: .long, help: "The data directory.", completion: .directory) var dataDir = "./var/dev"
    @Option(name: .long, help: "The data listener's port.") var port = Port(8080)
    @Option(name: .long, help: "The admin listener's port.") var adminPort = Port(8081)
    @Option(name: .long, help: "The fake FCM's port.") var emulatorPort = Port(8085)
    @Option(name: .long, help: "How to print the answer.") var output: OutputFormat = .table

    func run() async throws {
        let logger = LogConfiguration(level: .warning, format: .text).bootstrap()
        defer { logger.flush() }
        let files = try DevelopmentFiles(directory: self.dataDir)
        let gateway = try await Gateway(
            self.configuration,
            secrets: try files.secrets(),
            tokenHosts: TokenHosts([], admitsLoopback: true),
            logger: logger
        )
        // Not ready until the demo tenant can send.
        gateway.readiness.hold()
        let emulator = FCMEmulator(
            configuration: EmulatorConfiguration(port: self.emulatorPort.number, serverKeys: [try files.serverKey()]),
            logger: logger
        )
        let setup = DemoSetup(gateway: gateway, emulator: emulator, files: files, format: self.output)
        try await FCMEmulator.namingAddress("127.0.0.1", self.emulatorPort.number) {
            // There is no file to reload: SIGHUP means that the terminal has gone.
            try await gateway.group(
                with: [NamedService("emulator", emulator), NamedService("demo setup", setup)],
                stoppedBy: [.sigterm, .sigint, .sighup],
                logger: logger
            )
            .run()
        }
    }

    private var configuration: GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.dataDir = self.dataDir
        configuration.http.server.host = "127.0.0.1"
        configuration.http.server.port = self.port.number
        configuration.http.drainGrace = .zero
        // It shares processor and disk with other programs, so slowness is no reason to refuse requests.
        configuration.http.maxLag = .seconds(10)
        configuration.http.server.headTimeout = .seconds(60)
        configuration.http.server.bodyTimeout = .seconds(60)
        configuration.upstream.connectTimeout = .seconds(10)
        configuration.upstream.timeout = .seconds(30)
        configuration.upstream.deadline = .seconds(60)
        configuration.audit.commitTimeout = .seconds(20)
        configuration.audit.spoolAfter = .seconds(2)
        configuration.admin.server.port = self.adminPort.number
        // The pages that `make docs` builds.
        configuration.admin.docsDirectory = ".build/docs"
        return configuration
    }
}
