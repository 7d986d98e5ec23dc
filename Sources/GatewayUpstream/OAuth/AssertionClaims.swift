import GatewayCore
import JWTKit

/// The claims by which a service account asks for an access token (RFC 7523, 3).
struct AssertionClaims: JWTPayload {
    /// All that sending needs.
    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// The longest life that Google accepts.
    private static let lifeSeconds = 3_600

    var iss: String
    var scope: String
    var aud: String
    var iat: Int
    var exp: Int

    /// The claims of an account at a time.
    init(_ credential: ServiceAccountCredential, now: Timestamp) {
        self.iss = credential.clientEmail
        self.scope = Self.scope
        self.aud = credential.tokenURI.text
        self.iat = now.seconds
        self.exp = now.seconds + Self.lifeSeconds
    }

    /// Nobody verifies what we have just signed.
    func verify(using algorithm: some JWTAlgorithm) {}
}
