import Crypto

/// An opened service account, which authorises calls by the v1 protocol.
///
/// A class, since it goes along with every call.
package final class ServiceAccountCredential: Sendable {
    /// The Firebase project that the account belongs to.
    package let projectID: String
    /// The account's address, which identifies it.
    package let clientEmail: String
    /// The key's name among the account's keys.
    package let privateKeyID: String
    /// The RSA key as PKCS#8 in PEM.
    package let privateKey: Secret
    /// Where access tokens are asked for.
    package let tokenURI: TokenURI
    /// The server to call instead of the configured one.
    package let endpoint: String?
    /// The start of the SHA-256 of all of the account's members; tells credentials apart.
    package let fingerprint: String

    /// The account's members, as they are sealed.
    let sealedForm: Secret

    /// Reads the content of a service-account file.
    ///
    /// - Parameters:
    ///   - json: the file's bytes.
    ///   - endpoint: the server to call instead of the configured one.
    ///   - hosts: where tokens may be asked for.
    /// - Throws: the first problem, with the member at fault.
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

    /// The members of a service-account file that are read.
    package static let fileMembers = Set(ServiceAccountFile.CodingKeys.allCases.map(\.rawValue))

    /// The fingerprint that a service-account file would be stored with.
    ///
    /// - Parameter json: the file's bytes.
    /// - Returns: ``fingerprint`` of its account.
    /// - Throws: the first problem, with the member at fault; where tokens may be asked for is not judged.
    package static func fingerprint(ofFile json: [UInt8]) throws(ServiceAccountProblem) -> String {
        try ServiceAccountCredential(json: json, endpoint: nil).fingerprint
    }

    /// Opens a stored credential; `nil` when it does not open.
    convenience init?(opening stored: StoredCredential, salt: [UInt8], under masterKey: MasterKey) {
        guard let secret = try? stored.envelope.open(for: stored.context(salt: salt), under: masterKey) else {
            return nil
        }
        // Where tokens may be asked for can have changed since it was put; that is judged when one is needed.
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
        self.sealedForm = Secret(bytes: canonical)
        self.fingerprint = Hex.text(SHA256.hash(data: canonical).prefix(8))
    }
}
