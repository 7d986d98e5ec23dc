import AsyncHTTPClient
import GatewayTestKit
import NIOSSL

/// A client that shows a certificate, or none, over a connection of its own.
struct CertifiedClient {
    /// Runs a body with a client, which is closed afterwards.
    ///
    /// - Parameters:
    ///   - identity: its certificate; `nil` for none.
    ///   - authority: the only one whose servers it trusts, in PEM; `nil` to trust any.
    ///   - body: what to do with it.
    /// - Returns: what the body returns.
    /// - Throws: what the body throws.
    static func with<Result>(
        _ identity: TestIdentity?,
        trusting authority: String? = nil,
        _ body: (HTTPClient) async throws -> Result
    ) async throws -> Result {
        var tls = TLSConfiguration.clientDefault
        tls.certificateVerification = authority == nil ? .none : .noHostnameVerification
        if let authority {
            tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(authority.utf8)))
        }
        if let identity {
            tls.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(identity.certificate.utf8))
                .map { .certificate($0) }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: Array(identity.privateKey.utf8), format: .pem))
        }
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.httpVersion = .http1Only
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        do {
            let result = try await body(client)
            try await client.shutdown()
            return result
        } catch {
            try? await client.shutdown()
            throw error
        }
    }
}
