import FCMModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An opened service account, which authorises calls by the v1 protocol.
///
/// It is a class because it travels with every call.
package final class ServiceAccountCredential: TenantCredential {
    package static let kind = UpstreamKind.v1

    package let projectID: String
    package let clientEmail: String
    package let privateKeyID: String
    /// The RSA key as PKCS#8 in PEM.
    package let privateKey: Secret
    package let tokenURI: TokenURI
    /// The server to call instead of the configured one.
    package let endpoint: String?
    /// Tells credentials apart in every send.
    package let fingerprint: String
    /// The account's members in their canonical form.
    package let secret: Secret

    /// Reads the content of a service-account file. Throws the first problem, with the member at fault.
    package convenience init(
        json: [UInt8],
        endpoint: String?,
        allowing hosts: TokenHosts
    ) throws(ServiceAccountProblem) {
        try self.init(json: json, endpoint: endpoint)
        switch hosts.rejection(of: self.tokenURI) {
        case nil: break
        case .unencrypted:
            throw ServiceAccountProblem("token_uri", "This must be an https URL; \(PlainHTTP.exception)")
        case .unlisted:
            throw ServiceAccountProblem("token_uri", "The setting upstream.allowedTokenHosts does not have this host")
        }
    }

    package static let fileMembers = Set(ServiceAccountFile.CodingKeys.allCases.map(\.rawValue))

    /// Returns the fingerprint that a service-account file would be stored with. Does not check the token endpoint.
    package static func fingerprint(ofFile json: [UInt8]) throws(ServiceAccountProblem) -> String {
        try ServiceAccountCredential(json: json, endpoint: nil).fingerprint
    }

    package convenience init?(opening stored: StoredCredential, salt: [UInt8], under masterKey: MasterKey) {
        guard let secret = stored.open(salt: salt, under: masterKey) else { return nil }
        // The allowed token hosts can have changed since, so they are checked when a token is needed.
        do {
            try self.init(json: secret.revealBytes(), endpoint: stored.endpoint)
        } catch {
            return nil
        }
    }

    private init(json: [UInt8], endpoint: String?) throws(ServiceAccountProblem) {
        let file = try ServiceAccountFile(json: json)
        guard let tokenURI = TokenURI(file.tokenURI) else {
            throw ServiceAccountProblem("token_uri", "This is no http(s) URL without user, query and fragment")
        }
        guard let canonical = try? file.encoded() else {
            throw ServiceAccountProblem(nil, "The file can't be written in its canonical form")
        }
        self.projectID = file.projectID
        self.clientEmail = file.clientEmail
        self.privateKeyID = file.privateKeyID
        self.privateKey = Secret(file.privateKey)
        self.tokenURI = tokenURI
        self.endpoint = endpoint
        self.secret = Secret(bytes: canonical)
        self.fingerprint = self.secret.fingerprint
    }
}

/// The reason why a service-account file can't be used.
package struct ServiceAccountProblem: Error, Sendable, Hashable {
    /// The member at fault, `nil` if the file is none of a service account.
    package let member: String?
    /// The problem, in words for an operator. Never holds the member's value.
    package let message: String

    init(_ member: String?, _ message: String) {
        self.member = member
        self.message = message
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

    init(json: [UInt8]) throws(ServiceAccountProblem) {
        do {
            self = try JSONDecoder().decode(Self.self, from: Data(json))
        } catch DecodingError.keyNotFound(let key, _) {
            throw ServiceAccountProblem(key.stringValue, "This must be given")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            throw ServiceAccountProblem(context.codingPath.last?.stringValue, "This must be a string")
        } catch {
            throw ServiceAccountProblem(nil, "This is no JSON object")
        }
        try self.check()
    }

    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(self))
    }

    private func check() throws(ServiceAccountProblem) {
        guard self.type == "service_account" else {
            throw ServiceAccountProblem("type", "Only files of the type service_account hold a key of their own")
        }
        guard (1...128).contains(self.projectID.utf8.count), self.projectID.utf8.allSatisfy(Self.isOfProjectID) else {
            throw ServiceAccountProblem("project_id", "A project id consists of letters, digits and - . _ :")
        }
        guard Self.isVisible(self.clientEmail, maxBytes: 320), self.clientEmail.contains("@") else {
            throw ServiceAccountProblem("client_email", "This is no address of a service account")
        }
        guard Self.isVisible(self.privateKeyID, maxBytes: 256) else {
            throw ServiceAccountProblem("private_key_id", "A key's id has neither blanks nor controls")
        }
        guard Self.isPrivateKey(self.privateKey) else {
            throw ServiceAccountProblem("private_key", "This is no private key in PEM, as such files hold it (PKCS#8)")
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

    private static func isVisible(_ text: String, maxBytes: Int) -> Bool {
        (1...maxBytes).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    private static func isOfProjectID(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"): true
        default: byte.isLetter || byte.isDigit
        }
    }
}

extension ServiceAccountFile: CustomStringConvertible, CustomReflectable {
    var description: String { "ServiceAccountFile(\(self.clientEmail))" }

    /// Shows nothing of the key in dumps and debuggers.
    var customMirror: Mirror { Mirror(self, children: ["clientEmail": self.clientEmail]) }
}
