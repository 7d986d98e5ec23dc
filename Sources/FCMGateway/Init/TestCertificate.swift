import Crypto
import FCMModel
import Foundation
import SwiftASN1
import X509

/// A self-signed certificate for trying TLS; clients must be configured to trust it.
struct TestCertificate {
    /// Both in PEM.
    let certificate: String
    let privateKey: String

    init(for host: String, at now: Date) throws {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName(host) }
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
                SubjectAlternativeNames([.dnsName(host)])
            },
            issuerPrivateKey: Certificate.PrivateKey(key)
        )
        self.certificate = try certificate.serializeAsPEM().pemString + "\n"
        self.privateKey = key.pemRepresentation + "\n"
    }

    static func isHostName(_ text: String) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        return text.utf8.count <= 253 && Int(labels[labels.count - 1]) == nil
            && labels.allSatisfy { label in
                (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                    && label.utf8.allSatisfy { $0.isLowerAlphanumeric || $0 == UInt8(ascii: "-") }
            }
    }
}
