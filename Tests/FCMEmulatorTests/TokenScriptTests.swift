import Testing

@testable import FCMEmulator

@Suite("TokenScript")
struct TokenScriptTests {
    @Test("Every name of table 9 can be asked for", arguments: LegacyErrorName.allCases)
    func known(name: LegacyErrorName) {
        #expect(TokenScript(token: "ERROR_\(name.rawValue)") == .failed(name.rawValue))
        #expect(TokenScript(token: "dev-ERROR_\(name.rawValue)_17") == .failed(name.rawValue))
    }

    @Test(
        "Other texts",
        arguments: [
            ("plain", TokenScript.accepted(canonical: nil)),
            ("ERROR_", .accepted(canonical: nil)),
            ("ERROR_QUOTA_EXCEEDED:x", .failed("QUOTA_EXCEEDED")),
            ("ERROR_NotRegisteredYet", .failed("NotRegisteredYet")),
            ("old-CANONICAL_new:token-1", .accepted(canonical: "new:token-1")),
            ("CANONICAL_", .accepted(canonical: nil)),
            ("CANONICAL_ERROR_NotRegistered", .failed("NotRegistered")),
        ]
    )
    func others(token: String, expected: TokenScript) {
        #expect(TokenScript(token: token) == expected)
    }
}
