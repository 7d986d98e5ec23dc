import Crypto
import Foundation
import SwiftASN1
import X509

/// Certifies servers and clients for tests.
package struct TestAuthority: Sendable {
    package let certificate: String
    private let name: DistinguishedName
    private let key: P256.Signing.PrivateKey

    package init(_ name: String = "test authority") throws {
        self.name = try DistinguishedName { CommonName(name) }
        self.key = P256.Signing.PrivateKey()
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(self.key.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: -3_600),
            notValidAfter: Date(timeIntervalSinceNow: 86_400),
            issuer: self.name,
            subject: self.name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
            },
            issuerPrivateKey: Certificate.PrivateKey(self.key)
        )
        self.certificate = try certificate.serializeAsPEM().pemString
    }

    /// Issues a certificate for a fresh key.
    package func certify(
        _ subject: String,
        dnsNames: [String] = [],
        addresses: [[UInt8]] = [],
        uris: [String] = [],
        emails: [String] = [],
        validity: Range<Double> = -3_600..<86_400
    ) throws -> TestIdentity {
        let key = P256.Signing.PrivateKey()
        let names =
            dnsNames.map { GeneralName.dnsName($0) }
            + addresses.map { GeneralName.ipAddress(ASN1OctetString(contentBytes: $0[...])) }
            + uris.map { GeneralName.uniformResourceIdentifier($0) }
            + emails.map { GeneralName.rfc822Name($0) }
        let certificate = try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: validity.lowerBound),
            notValidAfter: Date(timeIntervalSinceNow: validity.upperBound),
            issuer: self.name,
            subject: try DistinguishedName { CommonName(subject) },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                try ExtendedKeyUsage([.serverAuth, .clientAuth])
                if !names.isEmpty { SubjectAlternativeNames(names) }
            },
            issuerPrivateKey: Certificate.PrivateKey(self.key)
        )
        return TestIdentity(certificate: try certificate.serializeAsPEM().pemString, privateKey: key.pemRepresentation)
    }
}

/// A certificate and its key, both in PEM.
package struct TestIdentity: Sendable, Hashable {
    package let certificate: String
    package let privateKey: String

    package init(certificate: String, privateKey: String) {
        self.certificate = certificate
        self.privateKey = privateKey
    }
}
