import ArgumentParser
import FCMEmulator
import Foundation
import GatewayCore
import GatewayService
import Logging
import NIOCore
import ServiceLifecycle
import UnixSignals

/// `emulator`: runs the fake FCM alone.
struct EmulatorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "emulator",
        abstract: "Run a fake FCM for tests.",
        usage: "fcm-gateway-dev emulator [OPTIONS]",
        discussion: """
            It accepts every server key, and lists the requests it received at /_emulator/journal.

            Example:
              fcm-gateway-dev emulator --port 8085
            """
    )

    @Option(name: .long, help: "The address to listen on.") var host = "127.0.0.1"
    @Option(name: .long, help: "The port to listen on; 0 lets the system choose.") var port = Port(8085)

    @Option(
        name: .long,
        help: "Use TLS, with certificate.pem and private-key.pem in this directory; created if absent.",
        completion: .directory
    )
    var tlsDir: String?

    func run() async throws {
        let logger = LogConfiguration(level: .info, format: .text).bootstrap()
        defer { logger.flush() }
        let emulator = FCMEmulator(
            configuration: EmulatorConfiguration(
                host: self.host,
                port: self.port.number,
                certificate: try self.tlsDir.map(EmulatorCertificate.init(keptIn:))
            ),
            logger: logger
        )
        try await FCMEmulator.namingAddress(self.host, self.port.number) {
            try await ServiceGroup(
                services: [emulator],
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: logger
            )
            .run()
        }
    }
}

extension FCMEmulator {
    /// Adds the address to a failure to listen; the gateway's own listeners name their addresses themselves.
    static func namingAddress(_ host: String, _ port: Int, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as IOError {
            let reason = SystemError.text(error.errnoCode)
            throw GatewayError(.conflict, "Can't listen on \(host):\(port): \(reason)")
        }
    }
}

extension EmulatorCertificate {
    /// The certificate in a directory; created if both its files are missing.
    init(keptIn directory: String) throws {
        let files = FileManager.default
        let (certificate, key) = ("\(directory)/certificate.pem", "\(directory)/private-key.pem")
        if !files.fileExists(atPath: certificate), !files.fileExists(atPath: key) {
            try files.createDirectory(atPath: directory, withIntermediateDirectories: true)
            self = try .selfSigned()
            let keyIsWritten = files.createFile(
                atPath: key,
                contents: Data(self.privateKey.utf8),
                attributes: [.posixPermissions: 0o600]
            )
            guard keyIsWritten,
                files.createFile(atPath: certificate, contents: Data(self.certificateChain.utf8))
            else { throw GatewayError(.storeUnavailable, "\(directory) can't be written") }
            return
        }
        self.init(
            certificateChain: try String(contentsOfFile: certificate, encoding: .utf8),
            privateKey: try String(contentsOfFile: key, encoding: .utf8)
        )
    }
}
