import GatewayTestKit
import Testing

@testable import GatewayCore

struct RetiredTokenSealerTests {
    @Test(
        "What is sealed opens where it belongs, and shows nothing",
        arguments: [("a", nil), ("token:ü", "new\u{0}token"), ("", nil), (String(repeating: "x", count: 5_000), "y")]
            as [(String, String?)]
    )
    func roundTrip(token: String, replacement: String?) throws {
        let sealer = RetiredTokenSealer(of: try .sample())
        let sealed = try #require(sealer.seal(token, replacement: replacement, at: 7))
        let opened = try #require(sealer.open(sealed, at: 7))
        #expect(opened.token == token)
        #expect(opened.replacement == replacement)
        #expect(try #require(sealer.seal(token, replacement: replacement, at: 7)) != sealed)
        if token.utf8.count > 3 { #expect(!String(decoding: sealed, as: UTF8.self).contains(token)) }
    }

    @Test("Nothing opens at another place, for another tenant, or changed")
    func misplaced() throws {
        let sealer = RetiredTokenSealer(of: try .sample("acme"))
        let sealed = try #require(sealer.seal("token", replacement: nil, at: 7))
        #expect(sealer.open(sealed, at: 8) == nil)
        #expect(RetiredTokenSealer(of: try .sample("other")).open(sealed, at: 7) == nil)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(sealer.open(changed, at: 7) == nil)
        }
        #expect(sealer.open([], at: 7) == nil)
        #expect(sealer.open(Array(sealed.dropLast()), at: 7) == nil)
    }
}
