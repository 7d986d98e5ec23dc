import Crypto
package import Foundation
import NIOSSL
import SwiftASN1
import X509

/// A certificate and its key, both in PEM.
package struct EmulatorCertificate: Sendable, Equatable {
    package var certificateChain: String
    package var privateKey: String

    package init(certificateChain: String, privateKey: String) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }

    /// Creates a self-signed certificate, which clients must be configured to trust.
    package static func selfSigned(
        for hosts: [String] = ["localhost", "127.0.0.1"],
        now: Date = Date()
    ) throws -> Self {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("fcm-gateway emulator") }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: now.addingTimeInterval(-3_600),
            notValidAfter: now.addingTimeInterval(365 * 86_400),
            issuer: name,
            subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                try ExtendedKeyUsage([.serverAuth])
                SubjectAlternativeNames(hosts.map(Self.generalName))
            },
            issuerPrivateKey: Certificate.PrivateKey(key)
        )
        return Self(
            certificateChain: try certificate.serializeAsPEM().pemString,
            privateKey: key.pemRepresentation
        )
    }

    private static func generalName(_ host: String) -> GeneralName {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        let bytes = parts.compactMap { UInt8($0) }
        guard parts.count == 4, bytes.count == 4 else { return .dnsName(host) }
        return .ipAddress(ASN1OctetString(contentBytes: bytes[...]))
    }

    /// Returns the TLS context of a server that offers HTTP/2 and HTTP/1.1 with this certificate.
    func serverContext() throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMBytes(Array(self.certificateChain.utf8))
        let key = try NIOSSLPrivateKey(bytes: Array(self.privateKey.utf8), format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(key)
        )
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = [
            Connections.HTTPVersion.http2.rawValue, Connections.HTTPVersion.http1.rawValue,
        ]
        return try NIOSSLContext(configuration: configuration)
    }
}
