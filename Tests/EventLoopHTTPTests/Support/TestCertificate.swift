import GatewayTestKit
import NIOSSL

/// The certificates of the tests' servers, created once per run.
enum TestCertificate {
    private static let authority = Result { try TestAuthority() }
    private static let identity = Result {
        try Self.authority.get().certify("localhost", dnsNames: ["localhost"], addresses: [[127, 0, 0, 1]])
    }

    /// The configuration of a server for `localhost` and `127.0.0.1`.
    static func server() throws -> TLSConfiguration { try Self.server(as: Self.identity.get()) }

    static func server(as identity: TestIdentity) throws -> TLSConfiguration {
        .makeServerConfiguration(
            certificateChain: try Self.certificates(identity.certificate).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(identity.privateKey.utf8), format: .pem))
        )
    }

    /// The configuration of a client that trusts the tests' authority, or another one.
    static func client(trusting authority: TestAuthority? = nil) throws -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        let authority = try authority ?? Self.authority.get()
        configuration.trustRoots = .certificates(try Self.certificates(authority.certificate))
        return configuration
    }

    static func certificates(_ pem: String) throws -> [NIOSSLCertificate] {
        try NIOSSLCertificate.fromPEMBytes(Array(pem.utf8))
    }
}
