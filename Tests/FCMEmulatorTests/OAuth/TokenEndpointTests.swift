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
        let bytes = Array(body.utf8)
        let request = ReceivedRequest("/token", headers: ["Content-Type": type], body: bytes, at: Self.now)
        let endpoint = TokenEndpoint { $0 == account.email ? account : nil }
        return try await endpoint.grant(for: request, now: Self.now)
    }

    @Test("A signed assertion gets a grant with its account, project and scope")
    func granted() async throws {
        let grant = try await Self.judge(TestAccount.form(try await TestAccount.assertion()))
        #expect(grant.email == "sender@demo.example")
        #expect(grant.projectID == "demo")
        #expect(grant.allowsSending)
    }

    @Test(
        "Invalid claims are refused",
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

    @Test("The audience may be Google's own token endpoint")
    func googleAudience() async throws {
        let claims = TestAccount.Claims(aud: "https://oauth2.googleapis.com/token")
        #expect(try await Self.judge(TestAccount.form(try await TestAccount.assertion(claims))).allowsSending)
    }

    @Test("Another scope is granted but does not allow sending")
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
        "Malformed token requests are refused",
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

@Suite("AccessTokens")
struct AccessTokensTests {
    private static let grant = AccessGrant(email: "e", projectID: "demo", scopes: [])

    @Test("A token gives access until it expires, is displaced or is revoked")
    func life() {
        var tokens = AccessTokens()
        let start = Date(timeIntervalSince1970: 0)
        let token = tokens.issue(Self.grant, expiry: start.addingTimeInterval(10))
        #expect(tokens.access(with: token, now: start.addingTimeInterval(9)) == .granted(Self.grant))
        #expect(tokens.access(with: token, now: start.addingTimeInterval(10)) == .expired)
        #expect(tokens.access(with: token + "x", now: start) == .unknown)
        for _ in 0..<10_000 { _ = tokens.issue(Self.grant, expiry: start) }
        #expect(tokens.access(with: token, now: start) == .unknown)
        let last = tokens.issue(Self.grant, expiry: start)
        #expect(tokens.access(with: last, now: start) == .expired)
        tokens.revokeAll()
        #expect(tokens.access(with: last, now: start) == .unknown)
    }
}

@Suite("ServiceAccountFile")
struct ServiceAccountFileTests {
    @Test("A generated account has the members of a real file and can be read back")
    func made() throws {
        let file = try TestAccount.file()
        #expect(file.privateKey.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
        #expect(file.privateKeyID.wholeMatch(of: /[0-9a-f]{40}/) != nil)
        let members = try JSONSerialization.jsonObject(with: Data(file.json.utf8)) as? [String: String]
        #expect(
            Set(try #require(members).keys) == [
                "type", "project_id", "private_key_id", "private_key", "client_email", "token_uri",
            ]
        )
        #expect(try ServiceAccountFile(json: file.json) == file)
        _ = try ServiceAccount(file)
    }

    @Test(
        "An invalid account file is refused with a reason",
        arguments: [
            ("[]", "the body is not a JSON object: the root is not an object"),
            (#"{"type":"authorized_user"}"#, "type must be service_account"),
            (#"{"type":"service_account","project_id":""}"#, "project_id is missing"),
            (#"{"type":"service_account","project_id":1}"#, "project_id must be a string"),
        ]
    )
    func refused(text: String, reason: String) {
        #expect(throws: EmulatorError.badServiceAccount(reason)) { try ServiceAccountFile(json: text) }
    }

    @Test("An unusable key is refused")
    func badKey() throws {
        var file = try TestAccount.file()
        file.privateKey = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
        #expect(throws: EmulatorError.self) { try ServiceAccount(file) }
    }
}
