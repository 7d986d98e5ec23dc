#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An identity of another provider, whose tokens Google's Security Token Service exchanges for access tokens: Workload
/// Identity Federation (RFC 8693).
///
/// The credential holds no secret: it names where the provider's token is read. It must not make the gateway call or read
/// what the configuration does not name.
package struct ExternalAccount: Sendable {
    /// The place of the provider's token, the *subject token*.
    package enum Subject: Sendable {
        /// A file below the configured folder.
        case file(String)
        case url(TokenURI, fields: [String: String])

        var address: TokenURI? { if case .url(let uri, _) = self { uri } else { nil } }
    }

    package let audience: String
    package let subjectTokenType: String
    package let tokenURL: TokenURI
    /// The address that exchanges the first access token for one of a service account.
    package let impersonationURL: TokenURI?
    package let subject: Subject
    /// The member of a JSON text that holds the subject token; `nil` if the text is the token.
    package let tokenMember: String?

    /// The header fields that a request for a subject token may have.
    private static let allowedFields: Set<String> = ["accept", "authorization", "metadata", "metadata-flavor"]
    private static let tokenTypes: Set<String> = [
        "urn:ietf:params:oauth:token-type:jwt", "urn:ietf:params:oauth:token-type:id_token",
    ]

    init(_ file: ExternalAccountFile) throws(CredentialProblem) {
        guard ServiceAccountFile.isVisible(file.audience, maxBytes: 1_024) else {
            throw CredentialProblem("audience", "This must name the provider, //iam.googleapis.com/projects/…")
        }
        guard Self.tokenTypes.contains(file.subjectTokenType) else {
            throw CredentialProblem("subject_token_type", "Only tokens of OpenID Connect are supported (jwt, id_token)")
        }
        guard let tokenURL = TokenURI(file.tokenURL) else {
            throw CredentialProblem("token_url", "This is no http(s) URL without user, query and fragment")
        }
        let impersonationURL = file.impersonationURL.map { TokenURI($0, isLoose: true) }
        if case .some(nil) = impersonationURL {
            throw CredentialProblem("service_account_impersonation_url", "This is no http(s) URL")
        }
        (self.audience, self.subjectTokenType, self.tokenURL) = (file.audience, file.subjectTokenType, tokenURL)
        self.impersonationURL = impersonationURL ?? nil
        self.subject = try Self.subject(file.source)
        self.tokenMember = try Self.tokenMember(file.source.format)
    }

    private static func subject(_ source: ExternalAccountFile.Source) throws(CredentialProblem) -> Subject {
        guard source.executable == nil, source.environmentID == nil, source.certificate == nil else {
            let detail =
                "Only files and URLs are supported: a credential must not start programs, and has no other providers"
            throw CredentialProblem("credential_source", detail)
        }
        switch (source.file, source.url) {
        case (let file?, nil):
            guard (1...1_024).contains(file.utf8.count), !file.utf8.contains(0) else {
                throw CredentialProblem("credential_source", "The file's name is empty or too long")
            }
            guard !file.split(separator: "/").contains("..") else {
                throw CredentialProblem("credential_source", "The file's name must not contain ..")
            }
            return .file(file)
        case (nil, let url?):
            guard let uri = TokenURI(url, isLoose: true) else {
                throw CredentialProblem("credential_source", "The url is no http(s) URL")
            }
            let fields = source.headers ?? [:]
            for (name, value) in fields {
                guard Self.allowedFields.contains(name.lowercased()) else {
                    let names = Self.allowedFields.sorted().joined(separator: ", ")
                    throw CredentialProblem("credential_source", "Its headers may be \(names)")
                }
                guard value.utf8.count <= 4_096, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                    throw CredentialProblem(
                        "credential_source",
                        "A header field's value has visible ASCII characters alone"
                    )
                }
            }
            return .url(uri, fields: fields)
        default:
            throw CredentialProblem("credential_source", "This must have file or url, and not both")
        }
    }

    private static func tokenMember(_ format: ExternalAccountFile.Format?) throws(CredentialProblem) -> String? {
        switch format?.type {
        case nil, "text": return nil
        case "json":
            guard let name = format?.fieldName, !name.isEmpty else {
                throw CredentialProblem("credential_source", "The format json needs subject_token_field_name")
            }
            return name
        default: throw CredentialProblem("credential_source", "The format's type is text or json")
        }
    }
}

/// The members of an external account's file that the gateway uses, which is also the sealed form, with the project.
struct ExternalAccountFile: Codable {
    enum CodingKeys: String, CodingKey {
        case type, audience
        case projectID = "project_id"
        case subjectTokenType = "subject_token_type"
        case tokenURL = "token_url"
        case impersonationURL = "service_account_impersonation_url"
        case source = "credential_source"
    }

    struct Source: Codable {
        enum CodingKeys: String, CodingKey {
            case file, url, headers, format, executable, certificate
            case environmentID = "environment_id"
        }

        var file: String?
        var url: String?
        var headers: [String: String]?
        var format: Format?
        var executable: Unsupported?
        var certificate: Unsupported?
        var environmentID: String?
    }

    struct Format: Codable {
        enum CodingKeys: String, CodingKey {
            case type
            case fieldName = "subject_token_field_name"
        }

        var type: String
        var fieldName: String?
    }

    /// A member that is refused, whatever it holds.
    struct Unsupported: Codable {
        init(from decoder: any Decoder) {}
    }

    let type: String
    var projectID: String?
    let audience: String
    let subjectTokenType: String
    let tokenURL: String
    var impersonationURL: String?
    let source: Source

    init(json: [UInt8]) throws(CredentialProblem) {
        self = try CredentialProblem.decoded(json, orOfAnotherType: "This has another form")
        guard self.type == "external_account" else {
            throw CredentialProblem("type", "This must be external_account")
        }
    }
}
