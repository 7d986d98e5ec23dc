#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The key of a service account, which signs requests for access tokens.
package struct ServiceAccountKey: Sendable {
    package let clientEmail: String
    package let privateKeyID: String
    /// The RSA key as PKCS#8 in PEM.
    package let privateKey: Secret
    package let tokenURI: TokenURI

    init(_ file: ServiceAccountFile) throws(CredentialProblem) {
        guard let tokenURI = TokenURI(file.tokenURI) else {
            throw CredentialProblem("token_uri", "This is no http(s) URL without user, query and fragment")
        }
        (self.clientEmail, self.privateKeyID) = (file.clientEmail, file.privateKeyID)
        (self.privateKey, self.tokenURI) = (Secret(file.privateKey), tokenURI)
    }
}

/// The members of a service-account file that the gateway uses, which is also the sealed form. Other members, such as
/// addresses of certificates, are skipped.
struct ServiceAccountFile: Codable {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case type
        case projectID = "project_id"
        case privateKeyID = "private_key_id"
        case privateKey = "private_key"
        case clientEmail = "client_email"
        case tokenURI = "token_uri"
    }

    /// The encoding of an RSA key of 2,048 bits has about 1,200 bytes.
    private static let minKeyBytes = 1_000

    let type: String
    let projectID: String
    let privateKeyID: String
    let privateKey: String
    let clientEmail: String
    let tokenURI: String

    init(json: [UInt8]) throws(CredentialProblem) {
        self = try CredentialProblem.decoded(json, orOfAnotherType: "This must be a string")
        try self.check()
    }

    private func check() throws(CredentialProblem) {
        guard self.type == "service_account" else {
            throw CredentialProblem("type", "This is no service account; external_account has a member of its own")
        }
        try V1Credential.check(projectID: self.projectID)
        guard Self.isVisible(self.clientEmail, maxBytes: 320), self.clientEmail.contains("@") else {
            throw CredentialProblem("client_email", "This is no address of a service account")
        }
        guard Self.isVisible(self.privateKeyID, maxBytes: 256) else {
            throw CredentialProblem("private_key_id", "A key's id has neither blanks nor controls")
        }
        guard Self.isPrivateKey(self.privateKey) else {
            throw CredentialProblem("private_key", "This is no private key in PEM, as such files hold it (PKCS#8)")
        }
    }

    private static func isPrivateKey(_ text: String) -> Bool {
        guard text.utf8.count <= 16_384 else { return false }
        let lines = text.split(whereSeparator: \.isNewline)
        guard lines.count > 2, lines.first == "-----BEGIN PRIVATE KEY-----", lines.last == "-----END PRIVATE KEY-----"
        else { return false }
        let content = Data(base64Encoded: lines.dropFirst().dropLast().joined())
        return (content?.count ?? 0) >= Self.minKeyBytes
    }

    static func isVisible(_ text: String, maxBytes: Int) -> Bool {
        (1...maxBytes).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

}

extension ServiceAccountFile: CustomStringConvertible, CustomReflectable {
    var description: String { "ServiceAccountFile(\(self.clientEmail))" }

    /// Shows nothing of the key in dumps and debuggers.
    var customMirror: Mirror { Mirror(self, children: ["clientEmail": self.clientEmail]) }
}
