import GatewayTestKit
import Testing

@testable import GatewayCore

struct RetiredTokenOwnerTests {
    private static func token(_ text: String, replacement: String? = nil) -> RetiredToken {
        RetiredToken(kind: .token, text: text, state: .replaced, since: .sample, replacement: replacement)
    }

    @Test(
        "A sealed token opens at its place, and its text does not appear",
        arguments: [
            ("a", nil), ("token:ü", "new\u{0}token"), ("", nil), ("a", ""), (String(repeating: "x", count: 5_000), "y"),
        ] as [(String, String?)]
    )
    func roundTrip(text: String, replacement: String?) throws {
        let owner = RetiredToken.Owner(try .sample())
        let token = Self.token(text, replacement: replacement)
        let sealed = try owner.seal(token, at: 7)
        let opened = try #require(owner.open(sealed, at: 7))
        #expect(opened.text == text)
        #expect(opened.replacement == replacement)
        #expect(try owner.seal(token, at: 7) != sealed)
        if text.utf8.count > 3 { #expect(!String(decoding: sealed, as: UTF8.self).contains(text)) }
    }

    @Test("A cursor opens only for its tenant, and its length does not depend on its position")
    func cursors() throws {
        let (owner, other) = (RetiredToken.Owner(try .sample("acme")), RetiredToken.Owner(try .sample("other")))
        var lengths: Set<Int> = []
        for number in [0, 1, 70_000_000_000, .max] as [Int64] {
            let cursor = RetiredTokenFeed.Cursor(epoch: "1b4m2pxg7qz0k", position: number)
            let sealed = try owner.seal(cursor)
            #expect(owner.open(cursor: sealed) == cursor)
            #expect(other.open(cursor: sealed) == nil)
            lengths.insert(sealed.count)
        }
        #expect(lengths.count == 1)
        #expect(owner.open(cursor: []) == nil)
        #expect(try owner.open(cursor: owner.seal(Self.token("token"), at: 7)) == nil)
    }

    @Test("A sealed token does not open at another place, for another tenant, or after a change")
    func misplaced() throws {
        let owner = RetiredToken.Owner(try .sample("acme"))
        let sealed = try owner.seal(Self.token("token"), at: 7)
        #expect(owner.open(sealed, at: 8) == nil)
        #expect(RetiredToken.Owner(try .sample("other")).open(sealed, at: 7) == nil)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(owner.open(changed, at: 7) == nil)
        }
        #expect(owner.open([], at: 7) == nil)
        #expect(owner.open(Array(sealed.dropLast()), at: 7) == nil)
    }
}
