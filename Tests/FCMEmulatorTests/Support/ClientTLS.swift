import FCMEmulator
import NIOSSL

/// TLS as a client of the emulator needs it.
enum ClientTLS {
    /// Trusts the emulator's own certificate and nothing else.
    static func context(trusting certificate: EmulatorCertificate, protocols: [String]) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(
            try NIOSSLCertificate.fromPEMBytes(Array(certificate.certificateChain.utf8))
        )
        configuration.applicationProtocols = protocols
        return try NIOSSLContext(configuration: configuration)
    }
}
