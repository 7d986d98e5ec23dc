import Foundation
import Testing

@testable import FCMEmulator

@Suite("TokenEndpoint")
struct TokenEndpointTests {
    private static let now = Date(timeIntervalSince1970: 1_700_000_000)

    private static func judge(_ body: String, type: String = "application/x-www-form-urlencoded") async throws
        -> AccessGrant
    {
        let account = try ServiceAccount(try TestAccount.file())
        let request = ReceivedRequest(
            time: Self.now,
            method: "POST",
            target: "/token",
            headers: [HeaderField(name: "Content-Type", value: type)],
            bodyBytes: Array(body.utf8)
        )
        let endpoint = TokenEndpoint { $0 == account.email ? account : nil }
        return try await endpoint.grant(for: request, now: Self.now)
    }

    @Test("A signed assertion is worth a token for what it asks")
    func granted() async throws {
        let grant = try await Self.judge(TestAccount.form(try await TestAccount.assertion()))
        #expect(grant.email == "sender@demo.example")
        #expect(grant.projectID == "demo")
        #expect(grant.allowsSending)
    }

    @Test(
        "Claims that do not hold are refused",
        arguments: [
            (TestAccount.Claims(iss: "x@y.z"), "invalid_grant", "account not found"),
            (TestAccount.Claims(aud: "https://elsewhere/token"), "invalid_grant", "Failed audience check"),
            (TestAccount.Claims(iat: nil), "invalid_grant", "short-lived"),
            (TestAccount.Claims(exp: nil), "invalid_grant", "short-lived"),
            (TestAccount.Claims(exp: 1_700_003_601), "invalid_grant", "short-lived"),
            (TestAccount.Claims(iat: 1_700_000_061, exp: 1_700_000_100), "invalid_grant", "short-lived"),
            (TestAccount.Claims(iat: 1_699_990_000, exp: 1_699_993_600), "invalid_grant", "short-lived"),
            (TestAccount.Claims(iat: 1_700_000_000, exp: 1_700_000_000), "invalid_grant", "short-lived"),
            (TestAccount.Claims(iat: .max, exp: .min), "invalid_grant", "short-lived"),
            (TestAccount.Claims(scope: nil), "invalid_scope", "Invalid OAuth scope"),
            (TestAccount.Claims(scope: "everything"), "invalid_scope", "Invalid OAuth scope"),
            (TestAccount.Claims(sub: "boss@demo.example"), "unauthorized_client", "unauthorized"),
        ]
    )
    func refusedClaims(claims: TestAccount.Claims, code: String, text: String) async throws {
        let form = TestAccount.form(try await TestAccount.assertion(claims))
        let refusal = await #expect(throws: TokenRefusal.self) { try await Self.judge(form) }
        #expect(refusal?.code == code)
        #expect(refusal?.description.contains(text) == true)
    }

    @Test("The audience may be the real service's, which Google's libraries name in any case")
    func googleAudience() async throws {
        let claims = TestAccount.Claims(aud: "https://oauth2.googleapis.com/token")
        #expect(try await Self.judge(TestAccount.form(try await TestAccount.assertion(claims))).allowsSending)
    }

    @Test("Another scope is granted, but does not allow to send")
    func otherScope() async throws {
        let claims = TestAccount.Claims(scope: "https://www.googleapis.com/auth/devstorage.read_only")
        #expect(!(try await Self.judge(TestAccount.form(try await TestAccount.assertion(claims))).allowsSending))
    }

    @Test("The signature must be RS256 by the account's key")
    func signature() async throws {
        let assertion = try await TestAccount.assertion()
        let parts = assertion.split(separator: ".").map(String.init)
        let other = try await TestAccount.assertion(TestAccount.Claims(scope: "https://www.googleapis.com/auth/x"))
        let kid = try TestAccount.file().privateKeyID
        let none = Data(#"{"alg":"none","typ":"JWT","kid":"\#(kid)"}"#.utf8).base64EncodedString()
        let forged = [
            try await TestAccount.assertion(keyID: "another"),
            parts[0] + "." + parts[1] + "." + (other.split(separator: ".").last ?? ""),
            none.replacing("=", with: "") + "." + parts[1] + "." + parts[2],
        ]
        for assertion in forged {
            let refusal = await #expect(throws: TokenRefusal.self) {
                try await Self.judge(TestAccount.form(assertion))
            }
            #expect(refusal == .invalidGrant("Invalid JWT Signature."))
        }
    }

    @Test(
        "Requests of another form are refused",
        arguments: [
            ("{}", "application/json", "invalid_request"),
            ("a=%", "application/x-www-form-urlencoded", "invalid_request"),
            ("grant_type=password", "application/x-www-form-urlencoded", "unsupported_grant_type"),
            ("assertion=x", "application/x-www-form-urlencoded", "unsupported_grant_type"),
            (TestAccount.form(""), "application/x-www-form-urlencoded", "invalid_request"),
            (TestAccount.form("x"), "application/x-www-form-urlencoded", "invalid_grant"),
            (TestAccount.form("a.b.c"), "application/x-www-form-urlencoded", "invalid_grant"),
        ]
    )
    func otherForms(body: String, type: String, code: String) async throws {
        let refusal = await #expect(throws: TokenRefusal.self) { try await Self.judge(body, type: type) }
        #expect(refusal?.code == code)
        #expect(refusal?.status == 400)
    }
}
