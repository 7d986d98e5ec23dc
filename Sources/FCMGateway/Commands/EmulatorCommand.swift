import ArgumentParser
import FCMEmulator
import GatewayCore
import Logging
import ServiceLifecycle
import UnixSignals

/// `emulator`: runs the fake FCM alone.
struct EmulatorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "emulator",
        abstract: "Run a fake FCM for tests.",
        discussion: "It lets every server key in, and tells what it received at /_emulator/journal."
    )

    @Option(name: .long, help: "The address to listen on.") var host = "127.0.0.1"
    @Option(name: .long, help: "The port to listen on; 0 lets the system choose.") var port = 8085

    @Option(
        name: .long,
        help: "Speak TLS, by the certificate.pem and private-key.pem in this directory, made if absent.",
        completion: .directory
    )
    var tlsDir: String?

    func run() async throws {
        let logger = LogConfiguration(level: .info, format: .text).bootstrap()
        defer { logger.flush() }
        try await GatewayError.reporting(after: logger) {
            let emulator = FCMEmulator(
                configuration: EmulatorConfiguration(
                    host: self.host,
                    port: self.port,
                    certificate: try self.tlsDir.map(EmulatorCertificate.init(keptIn:))
                ),
                logger: logger
            )
            try await GatewayError.namingEmulator(self.host, self.port) {
                try await ServiceGroup(
                    services: [emulator],
                    gracefulShutdownSignals: [.sigterm, .sigint],
                    logger: logger
                )
                .run()
            }
        }
    }
}
