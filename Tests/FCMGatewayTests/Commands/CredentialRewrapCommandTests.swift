import Foundation
import GatewayCore
import GatewayTestKit
import StrictJSON
import Testing

@testable import FCMGateway

struct CredentialRewrapCommandTests {
    private func secret(_ tenant: String) throws -> SealedSecret {
        let credential = StoredCredential(
            tenant: try .sample(tenant),
            kind: .v1,
            version: 4,
            envelope: Envelope(wrappedKey: Data(), sealed: Data()),
            endpoint: nil,
            fingerprint: "",
            createdAt: .sample
        )
        return SealedSecret(credential, salt: [])
    }

    @Test("Up to 20 secrets that don't open are named; the rest are counted")
    func names() throws {
        let all = try (0..<50).map { try self.secret("tenant-\($0)") }
        let both = try #require(MasterKey(.sample("new"), previous: .sample("old")))
        let some = CredentialRewrapCommand.refusal(Array(all.prefix(25)), of: all, both)
        #expect(some.message.contains("the v1 credential of tenant tenant-0, version 4,"))
        #expect(some.message.contains("tenant-19"))
        #expect(!some.message.contains("tenant-20"))
        #expect(some.message.contains("and 5 more"))
        #expect(some.message.contains("Nothing was changed"))
    }

    @Test("The refusal distinguishes wrong keys from a missing previous key")
    func wrongKeys() throws {
        let all = [try self.secret("a")]
        let both = try #require(MasterKey(.sample("new"), previous: .sample("old")))
        #expect(CredentialRewrapCommand.refusal(all, of: all, both).message.contains("neither"))
        let alone = CredentialRewrapCommand.refusal(all, of: all, try .sample())
        #expect(alone.message.contains("set GATEWAY_PREVIOUS_MASTER_KEY"))
    }

    @Test("The outcome is printed as a table or as JSON", arguments: [0, 3])
    func outcome(moved: Int) throws {
        let outcome = CredentialRewrapCommand.Outcome(moved: moved, current: 2, fingerprint: "0123456789abcdef")
        let json = try JSONValue(parsing: try CredentialRewrapCommand.answer(outcome, json: true).answer)
        #expect(json.canonicalText == #"{"already_current":2,"master_key":"0123456789abcdef","moved":\#(moved)}"#)
        let table = try CredentialRewrapCommand.answer(outcome, json: false)
        #expect(table.answer.contains("moved:            \(moved)"))
        #expect(table.remark.contains("already") == (moved == 0))
    }
}
