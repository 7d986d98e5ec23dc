import Foundation
import Testing

@testable import FCMEmulator

@Suite("AccessTokens")
struct AccessTokensTests {
    private static let grant = AccessGrant(email: "e", projectID: "demo", scopes: [])

    @Test("A token is worth its grant until it expires, is revoked or forgotten")
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
