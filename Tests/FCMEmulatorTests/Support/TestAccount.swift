import FCMEmulator
import Foundation
import JWTKit

/// A service account of the tests, and assertions signed with its key.
///
/// The key is made once: it takes long.
enum TestAccount {
    /// Claims of an assertion; whatever a test wants to get wrong can be changed.
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

    /// The account's file.
    static func file() throws -> ServiceAccountFile { try self.made.get() }

    /// An assertion signed with the account's key; its header names that one or another.
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
