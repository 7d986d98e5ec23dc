import FCMModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An opened credential, which authorises calls by the v1 protocol with access tokens.
///
/// It is a class because it travels with every call.
package final class V1Credential: TenantCredential {
    /// The proof by which access tokens are requested.
    package enum Source: Sendable {
        case serviceAccount(ServiceAccountKey)
        case external(ExternalAccount)
        /// The identity of the machine, by the metadata server that the configuration names.
        case metadataServer

        /// The servers that it names.
        package var addresses: [TokenURI] {
            switch self {
            case .serviceAccount(let key): [key.tokenURI]
            case .external(let account):
                [account.tokenURL, account.impersonationURL, account.subject.address].compactMap(\.self)
            case .metadataServer: []
            }
        }
    }

    package static let kind = UpstreamKind.v1

    package let source: Source
    package let projectID: String
    /// The server to call instead of the configured one.
    package let endpoint: String?
    /// Tells credentials apart in every send.
    package let fingerprint: String
    /// The credential's members in their canonical form.
    package let secret: Secret

    private init(_ source: Source, projectID: String, endpoint: String?, canonical: [UInt8]) {
        (self.source, self.projectID, self.endpoint) = (source, projectID, endpoint)
        self.secret = Secret(bytes: canonical)
        self.fingerprint = self.secret.fingerprint
    }

    // MARK: Of operators

    /// Reads the content of a service-account file. Throws the first problem, with the member at fault.
    package convenience init(
        serviceAccount json: [UInt8],
        endpoint: String?,
        allowing hosts: TokenHosts
    ) throws(CredentialProblem) {
        try self.init(serviceAccount: json, endpoint: endpoint)
        guard case .serviceAccount(let key) = self.source else { return }
        try hosts.check(key.tokenURI, "token_uri")
    }

    /// Reads the content of a file of external account credentials, whose tokens are for a project.
    package convenience init(
        externalAccount json: [UInt8],
        projectID: String,
        endpoint: String?,
        allowing hosts: TokenHosts
    ) throws(CredentialProblem) {
        var file = try ExternalAccountFile(json: json)
        file.projectID = projectID
        try self.init(file, endpoint: endpoint)
        guard case .external(let account) = self.source else { return }
        try account.check(hosts)
    }

    /// Uses the identity of the machine. Throws unless the configuration names a metadata server.
    package convenience init(
        metadataServerFor projectID: String,
        endpoint: String?,
        allowing hosts: TokenHosts
    ) throws(CredentialProblem) {
        guard hosts.metadataServer != nil else {
            throw CredentialProblem(nil, "The setting upstream.metadataServer names no server")
        }
        try self.init(metadataServerFor: projectID, endpoint: endpoint)
    }

    package static let serviceAccountMembers = Set(ServiceAccountFile.CodingKeys.allCases.map(\.rawValue))

    /// Returns the fingerprint that a service-account file would be stored with. Does not check the token endpoint.
    package static func fingerprint(ofServiceAccount json: [UInt8]) throws(CredentialProblem) -> String {
        try V1Credential(serviceAccount: json, endpoint: nil).fingerprint
    }

    // MARK: Of the store

    private struct Stored: Codable {
        enum CodingKeys: String, CodingKey {
            case type
            case projectID = "project_id"
        }

        var type: String
        var projectID: String
    }

    package convenience init?(opening stored: StoredCredential, salt: [UInt8], under masterKey: MasterKey) {
        guard let json = stored.open(salt: salt, under: masterKey)?.revealBytes(),
            let type = try? JSONDecoder().decode(Stored.self, from: Data(json))
        else { return nil }
        // The allowed hosts can have changed since, so they are checked when a token is needed.
        do {
            switch type.type {
            case "external_account": try self.init(ExternalAccountFile(json: json), endpoint: stored.endpoint)
            case "metadata_server": try self.init(metadataServerFor: type.projectID, endpoint: stored.endpoint)
            default: try self.init(serviceAccount: json, endpoint: stored.endpoint)
            }
        } catch {
            return nil
        }
    }

    private convenience init(serviceAccount json: [UInt8], endpoint: String?) throws(CredentialProblem) {
        let file = try ServiceAccountFile(json: json)
        self.init(
            .serviceAccount(try ServiceAccountKey(file)),
            projectID: file.projectID,
            endpoint: endpoint,
            canonical: try Self.canonical(file)
        )
    }

    private convenience init(_ file: ExternalAccountFile, endpoint: String?) throws(CredentialProblem) {
        try Self.check(projectID: file.projectID ?? "")
        self.init(
            .external(try ExternalAccount(file)),
            projectID: file.projectID ?? "",
            endpoint: endpoint,
            canonical: try Self.canonical(file)
        )
    }

    private convenience init(metadataServerFor projectID: String, endpoint: String?) throws(CredentialProblem) {
        try Self.check(projectID: projectID)
        let canonical = try Self.canonical(Stored(type: "metadata_server", projectID: projectID))
        self.init(.metadataServer, projectID: projectID, endpoint: endpoint, canonical: canonical)
    }

    private static func canonical(_ members: some Encodable) throws(CredentialProblem) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(members) else {
            throw CredentialProblem(nil, "The credential can't be written in its canonical form")
        }
        return Array(data)
    }

    static func check(projectID: String) throws(CredentialProblem) {
        let isWellFormed = projectID.utf8.allSatisfy { byte in
            byte.isLetter || byte.isDigit || "-._:".utf8.contains(byte)
        }
        guard (1...128).contains(projectID.utf8.count), isWellFormed else {
            throw CredentialProblem("project_id", "A project id consists of letters, digits and - . _ :")
        }
    }
}

/// The reason why a v1 credential can't be used.
package struct CredentialProblem: Error, Sendable, Hashable {
    /// The member at fault, `nil` for the credential as a whole.
    package let member: String?
    /// The problem, in words for an operator. Never holds the member's value.
    package let message: String

    init(_ member: String?, _ message: String) {
        self.member = member
        self.message = message
    }

    /// Reads the JSON of a credential. `message` is the problem of a member that has another type.
    static func decoded<File: Decodable>(
        _ json: [UInt8],
        orOfAnotherType message: String
    ) throws(CredentialProblem) -> File {
        do {
            return try JSONDecoder().decode(File.self, from: Data(json))
        } catch DecodingError.keyNotFound(let key, _) {
            throw CredentialProblem(key.stringValue, "This must be given")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            throw CredentialProblem(context.codingPath.first?.stringValue, message)
        } catch {
            throw CredentialProblem(nil, "This is no JSON object")
        }
    }
}

extension TokenHosts {
    /// Throws unless tokens may be requested from an address, which this member names.
    fileprivate func check(_ uri: TokenURI, _ member: String) throws(CredentialProblem) {
        switch self.rejection(of: uri) {
        case nil: break
        case .unencrypted: throw CredentialProblem(member, "This must be an https URL; \(PlainHTTP.exception)")
        case .unlisted:
            throw CredentialProblem(member, "The setting upstream.allowedTokenHosts does not have this host")
        }
    }
}

extension ExternalAccount {
    /// Throws unless all that the account has called or read is allowed.
    fileprivate func check(_ hosts: TokenHosts) throws(CredentialProblem) {
        try hosts.check(self.tokenURL, "token_url")
        if let url = self.impersonationURL { try hosts.check(url, "service_account_impersonation_url") }
        switch self.subject {
        case .file:
            guard hosts.subjectTokenDirectory != nil else {
                let detail = "The setting upstream.subjectTokenDirectory names no folder for files of subject tokens"
                throw CredentialProblem("credential_source", detail)
            }
        case .url(let url, _):
            guard url.isEncrypted, hosts.admitsSubjectTokens(of: url) else {
                let detail = "This must be an https URL whose host is in upstream.subjectTokenHosts"
                throw CredentialProblem("credential_source", detail)
            }
        }
    }
}
