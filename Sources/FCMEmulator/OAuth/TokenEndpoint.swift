import Foundation
import JWTKit

/// `/token`: exchanges an assertion signed by a service account for an access token (RFC 7523, 2.1).
struct TokenEndpoint: Sendable {
    static let path = "/token"
    private static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    private static let scopePrefix = "https://www.googleapis.com/auth/"
    /// Google's client libraries use this audience, regardless of the key file's `token_uri`.
    private static let googleAudience = "https://oauth2.googleapis.com/token"
    private static let maxLifeSeconds = 3_600
    private static let skewSeconds = 60
    let account: @Sendable (String) -> ServiceAccount?

    func grant(for request: ReceivedRequest, now: Date) async throws(TokenRefusal) -> AccessGrant {
        let assertion = try Self.assertion(in: request)
        let keys = JWTKeyCollection()
        guard let stated = try? await keys.unverified(assertion, as: AssertionClaims.self) else {
            throw .invalidGrant("Invalid JWT: the assertion cannot be read.")
        }
        guard let account = self.account(stated.iss) else {
            throw .invalidGrant("Invalid grant: account not found")
        }
        guard Self.isSigned(assertion, with: account.keyID) else {
            throw .invalidGrant("Invalid JWT Signature.")
        }
        await keys.add(rsa: account.publicKey, digestAlgorithm: .sha256)
        guard let claims = try? await keys.verify(assertion, as: AssertionClaims.self) else {
            throw .invalidGrant("Invalid JWT Signature.")
        }
        return try Self.grant(to: account, claims: claims, now: now)
    }

    private static func assertion(in request: ReceivedRequest) throws(TokenRefusal) -> String {
        let mediaType = (request.header("content-type") ?? "").prefix { $0 != ";" }.lowercased()
        guard mediaType.trimmingCharacters(in: .whitespaces) == "application/x-www-form-urlencoded" else {
            throw .invalidRequest("The request must be a form.")
        }
        guard let fields = try? FormFields.read(request.bodyBytes) else {
            throw .invalidRequest("The form cannot be decoded.")
        }
        let types = fields.filter { $0.name == "grant_type" }.map(\.value)
        guard types == [Self.grantType] else {
            let given = types.joined(separator: ", ")
            throw TokenRefusal(status: 400, code: "unsupported_grant_type", description: "Invalid grant_type: \(given)")
        }
        let assertions = fields.filter { $0.name == "assertion" }.map(\.value)
        guard assertions.count == 1, let assertion = assertions.first, !assertion.isEmpty else {
            throw .invalidRequest("Missing required parameter: assertion")
        }
        return assertion
    }

    /// True if the header announces RS256 and the account's key.
    ///
    /// The library would verify with the given key whatever the header says.
    private static func isSigned(_ assertion: String, with keyID: String) -> Bool {
        var text = String(assertion.prefix { $0 != "." }).replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        guard let bytes = Data(base64Encoded: text), let members = try? JSONValue.members(of: Array(bytes)) else {
            return false
        }
        return members["alg"]?.text == "RS256" && members["kid"]?.text == keyID
            && (members["typ"]?.text ?? "JWT") == "JWT"
    }

    private static func grant(
        to account: ServiceAccount,
        claims: AssertionClaims,
        now: Date
    ) throws(TokenRefusal) -> AccessGrant {
        guard claims.aud == account.tokenURI || claims.aud == Self.googleAudience else {
            throw .invalidGrant("Invalid JWT: Failed audience check. The right audience is \(account.tokenURI)")
        }
        guard let issued = claims.iat, let expiry = claims.exp,
            Self.isReasonable(issued: issued, expiry: expiry, now: now)
        else {
            throw .invalidGrant(
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
                    + "Check your iat and exp values in the JWT claim."
            )
        }
        guard claims.sub == nil || claims.sub == claims.iss else { throw .unauthorizedClient }
        let scopes = Set((claims.scope ?? "").split(separator: " ").map(String.init))
        guard !scopes.isEmpty, scopes.allSatisfy({ $0.hasPrefix(Self.scopePrefix) }) else { throw .invalidScope }
        return AccessGrant(email: account.email, projectID: account.projectID, scopes: scopes)
    }

    private static func isReasonable(issued: Int, expiry: Int, now: Date) -> Bool {
        let now = Int(now.timeIntervalSince1970)
        let (life, overflows) = expiry.subtractingReportingOverflow(issued)
        return !overflows && (1...Self.maxLifeSeconds).contains(life) && issued <= now + Self.skewSeconds
            && expiry > now - Self.skewSeconds
    }
}

/// The claims of an assertion; ``TokenEndpoint`` checks them, by the emulator's own clock.
struct AssertionClaims: JWTPayload, Equatable {
    var iss: String
    var scope: String?
    var aud: String
    /// Seconds since 1970, like `exp`.
    var iat: Int?
    var exp: Int?
    var sub: String?

    func verify(using algorithm: some JWTAlgorithm) {}
}

/// The reason why no access token is issued (RFC 6749, 5.2).
struct TokenRefusal: RequestRefusal, Equatable {
    let status: Int
    /// The member `error`.
    let code: String
    /// The member `error_description`.
    let description: String

    static func invalidGrant(_ description: String) -> Self {
        Self(status: 400, code: "invalid_grant", description: description)
    }

    static func invalidRequest(_ description: String) -> Self {
        Self(status: 400, code: "invalid_request", description: description)
    }

    static let invalidScope = Self(
        status: 400,
        code: "invalid_scope",
        description: "Invalid OAuth scope or ID token audience provided."
    )

    static let unauthorizedClient = Self(
        status: 401,
        code: "unauthorized_client",
        description: "Client is unauthorized to retrieve access tokens using this method."
    )

    var reason: String { "\(self.code): \(self.description)" }

    var answer: Answer {
        let description = JSONValue.quoted(self.description)
        return .json(
            #"{"error":\#(JSONValue.quoted(self.code)),"error_description":\#(description)}"#,
            status: self.status
        )
    }
}
