import GatewayTestKit

@testable import GatewayService

/// A listener's certificate, key and client authority as files.
struct CertificateFiles {
    let directory: TemporaryDirectory

    /// Writes the files and names them as the configuration does.
    @discardableResult
    func write(_ identity: TestIdentity, clientAuthority: String? = nil) throws -> GatewayConfiguration.TLSFiles {
        GatewayConfiguration.TLSFiles(
            certificateFile: try self.directory.file("server.crt", identity.certificate),
            privateKeyFile: try self.directory.file("server.key", identity.privateKey),
            clientCAFile: try clientAuthority.map { try self.directory.file("clients.crt", $0) }
        )
    }
}
