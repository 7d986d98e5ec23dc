import Foundation

/// The servers from which a gateway without keys gets access tokens: a provider of subject tokens, Google's Security Token
/// Service (STS), IAM's impersonation, and the metadata server of a machine.
struct Federation: Sendable {
    /// The subject tokens that were made, and the machine's account.
    struct State {
        fileprivate var subjectTokens: [String: (projectID: String, expiry: Date)] = [:]
        /// The project of the machine's own account; `nil` for a machine without one.
        var machineProjectID: String?

        /// Makes a token of the provider, which STS exchanges until it expires.
        mutating func makeSubjectToken(projectID: String, expiry: Date) -> String {
            let token = "subject-\(UUID().uuidString)"
            self.subjectTokens[token] = (projectID, expiry)
            return token
        }
    }

    static let stsPath = "/v1/token"
    static let providerPath = "/subject-token"
    private static let metadataPath = "/computeMetadata/v1/instance/service-accounts/default/token"
    private static let impersonationPrefix = "/v1/projects/-/serviceAccounts/"
    private static let impersonationSuffix = ":generateAccessToken"
    private static let scopePrefix = "https://www.googleapis.com/auth/"

    let emulator: FCMEmulator
    let now: Date

    /// Answers a request to one of the servers; `nil` for a request to another path.
    func answer(to request: ReceivedRequest) throws(TokenRefusal) -> Answer? {
        switch request.path {
        case Self.stsPath: return try self.exchange(request)
        case Self.providerPath: return try self.provide(request)
        case Self.metadataPath: return try self.machineToken(request)
        case let path where path.hasPrefix(Self.impersonationPrefix) && path.hasSuffix(Self.impersonationSuffix):
            let email = path.dropFirst(Self.impersonationPrefix.count).dropLast(Self.impersonationSuffix.count)
            return try self.impersonate(String(email), request)
        default: return nil
        }
    }

    /// RFC 8693, 2.1.
    private func exchange(_ request: ReceivedRequest) throws(TokenRefusal) -> Answer {
        guard request.method == "POST", let fields = try? FormFields.read(request.bodyBytes) else {
            throw .invalidRequest("The request must be a form.")
        }
        func value(_ name: String) throws(TokenRefusal) -> String {
            let values = fields.filter { $0.name == name }.map(\.value)
            guard values.count == 1, let value = values.first, !value.isEmpty else {
                throw .invalidRequest("Missing required parameter: \(name)")
            }
            return value
        }
        guard try value("grant_type") == "urn:ietf:params:oauth:grant-type:token-exchange",
            try value("requested_token_type") == "urn:ietf:params:oauth:token-type:access_token"
        else { throw .invalidRequest("Unsupported grant or token type.") }
        guard try value("audience").hasPrefix("//iam.googleapis.com/") else {
            throw .invalidRequest("Invalid value for \"audience\".")
        }
        guard try value("subject_token_type").hasPrefix("urn:ietf:params:oauth:token-type:") else {
            throw .invalidRequest("Invalid subject token type.")
        }
        let text = try value("subject_token")
        guard let token = self.emulator.federation({ $0.subjectTokens[text] }) else {
            throw .invalidGrant("The subject token is not one of this provider.")
        }
        guard self.now < token.expiry else { throw .invalidGrant("The subject token is expired.") }
        return self.grant("federated@\(token.projectID)", token.projectID, try self.scopes(try value("scope")))
    }

    /// Gives a subject token as text, or as JSON for a query `format=json`; of a query `project_id`.
    private func provide(_ request: ReceivedRequest) throws(TokenRefusal) -> Answer {
        let query = request.target.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        let fields = (try? FormFields.read(Array(query.utf8))) ?? []
        guard let project = fields.first(where: { $0.name == "project_id" })?.value else {
            throw .invalidRequest("Missing required parameter: project_id")
        }
        let token = self.emulator.makeSubjectToken(projectID: project, lifetimeSeconds: 3_600)
        let isJSON = fields.contains { $0 == ("format", "json") }
        return isJSON ? .json(#"{"id_token":\#(JSONValue.quoted(token))}"#) : .text(token + "\n")
    }

    private func impersonate(_ email: String, _ request: ReceivedRequest) throws(TokenRefusal) -> Answer {
        guard request.method == "POST", let header = request.header("authorization"), header.hasPrefix("Bearer "),
            case .granted(let caller) = self.emulator.access(with: String(header.dropFirst("Bearer ".count))),
            caller.scopes.contains(Self.scopePrefix + "cloud-platform")
        else {
            throw TokenRefusal(status: 401, code: "UNAUTHENTICATED", description: "Request had invalid credentials.")
        }
        guard let account = self.emulator.account(email: email) else {
            throw TokenRefusal(status: 404, code: "NOT_FOUND", description: "Unknown service account.")
        }
        guard let members = try? JSONValue.members(of: request.bodyBytes), case .array(let texts)? = members["scope"]
        else { throw .invalidRequest("scope is missing") }
        let scopes = try self.scopes(texts.map { $0.text }.joined(separator: " "))
        let grant = AccessGrant(email: email, projectID: account.projectID, scopes: scopes)
        let (token, seconds) = self.emulator.issueToken(for: grant, now: self.now)
        let end = self.now.addingTimeInterval(TimeInterval(seconds)).formatted(.iso8601)
        return .json(#"{"accessToken":\#(JSONValue.quoted(token)),"expireTime":\#(JSONValue.quoted(end))}"#)
    }

    private func machineToken(_ request: ReceivedRequest) throws(TokenRefusal) -> Answer {
        guard request.method == "GET", request.header("metadata-flavor") == "Google" else {
            throw TokenRefusal(status: 403, code: "forbidden", description: "Metadata-Flavor: Google is missing.")
        }
        guard let project = self.emulator.federation({ $0.machineProjectID }) else {
            throw TokenRefusal(status: 404, code: "not_found", description: "The machine has no service account.")
        }
        return self.grant("machine@\(project)", project, [Self.scopePrefix + "firebase.messaging"])
    }

    private func scopes(_ text: String) throws(TokenRefusal) -> Set<String> {
        let scopes = Set(text.split(separator: " ").map(String.init))
        guard !scopes.isEmpty, scopes.allSatisfy({ $0.hasPrefix(Self.scopePrefix) }) else { throw .invalidScope }
        return scopes
    }

    private func grant(_ email: String, _ projectID: String, _ scopes: Set<String>) -> Answer {
        let grant = AccessGrant(email: email, projectID: projectID, scopes: scopes)
        let (token, seconds) = self.emulator.issueToken(for: grant, now: self.now)
        return .json(#"{"access_token":\#(JSONValue.quoted(token)),"expires_in":\#(seconds),"token_type":"Bearer"}"#)
    }
}
