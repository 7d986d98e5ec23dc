import FCMEmulator
import Foundation
import JWTKit

/// A service account of the tests, and assertions signed with its key.
///
/// The key is generated once, since that is slow.
enum TestAccount {
    /// The claims of an assertion; a test can change each of them.
    struct Claims: JWTPayload {
        var iss = "sender@demo.example"
        var scope: String? = "https://www.googleapis.com/auth/firebase.messaging"
        var aud = "https://token.example/token"
        var iat: Int? = 1_700_000_000
        var exp: Int? = 1_700_003_600
        var sub: String?

        func verify(using algorithm: some JWTAlgorithm) {}
    }

    private static let made = Result {
        try ServiceAccountFile(
            making: "demo",
            clientEmail: "sender@demo.example",
            tokenURI: "https://token.example/token"
        )
    }

    static func file() throws -> ServiceAccountFile { try self.made.get() }

    /// Returns an assertion signed with the account's key; its header names this key or `keyID`.
    static func assertion(_ claims: Claims = Claims(), keyID: String? = nil) async throws -> String {
        let file = try self.file()
        let kid = JWKIdentifier(string: keyID ?? file.privateKeyID)
        let key = try Insecure.RSA.PrivateKey(pem: file.privateKey)
        let keys = await JWTKeyCollection().add(rsa: key, digestAlgorithm: .sha256, kid: kid)
        return try await keys.sign(claims, kid: kid)
    }

    /// The form that carries an assertion.
    static func form(_ assertion: String) -> String {
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion
    }
}
