import Crypto
import Foundation
import GatewayCore
import GatewayTestKit
import Testing

@Suite("Secret")
struct SecretTests {
    private static let text = "canary-7f3b9a"

    /// A type that holds a secret as a configuration or a request would.
    private struct Holder {
        var secret = Secret(SecretTests.text)
        var others = [Secret(SecretTests.text)]
        var named = ["key": Secret(SecretTests.text)]
        var maybe: Secret? = Secret(SecretTests.text)
    }

    @Test("A secret never appears in descriptions or dumps")
    func neverShown() {
        let holder = Holder()
        var dumps = ["", ""]
        dump(holder, to: &dumps[0])
        dump(holder.secret, to: &dumps[1])
        let texts =
            dumps + [
                "\(holder)", "\(holder.secret)", String(describing: holder), String(reflecting: holder),
                String(describing: holder.maybe), holder.secret.debugDescription, "\(holder.others)",
                "\(Mirror(reflecting: holder.secret).children.map { "\($0)" })",
                "\(LegacyCredential(serverKey: holder.secret, endpoint: nil))",
            ]
        let bytes = Array(Self.text.utf8)
        let forms = [
            Self.text, Data(bytes).base64EncodedString(), Hex.text(bytes), "\(bytes)",
            bytes.map(String.init).joined(separator: ", "),
        ]
        for text in texts {
            #expect(!text.isEmpty)
            for form in forms { #expect(!text.contains(form)) }
        }
        #expect(Mirror(reflecting: holder.secret).children.isEmpty)
        #expect("\(holder.secret)" == "<redacted>")
    }

    @Test("A secret reveals the content that it was made from")
    func content() {
        #expect(Secret(Self.text).revealText() == Self.text)
        #expect(Secret(bytes: [0, 255, 7] as [UInt8]).revealBytes() == [0, 255, 7])
        #expect(Secret(SymmetricKey(data: [1, 2, 3])).revealBytes() == [1, 2, 3])
        #expect(Secret("ü").count == 2)
        #expect(Secret("").count == 0)
    }

    @Test("Random secrets have the requested length and differ", arguments: [16, 32, 64])
    func random(count: Int) {
        let secrets = (0..<20).map { _ in Secret(randomBytes: count) }
        #expect(secrets.allSatisfy { $0.count == count && $0.revealBytes().count == count })
        #expect(Set(secrets.map { $0.revealBytes() }).count == secrets.count)
    }

    @Test("A master key has exactly 32 bytes", arguments: [0, 1, 16, 31, 32, 33, 64])
    func masterKey(count: Int) {
        let secret = Secret(bytes: [UInt8](repeating: 7, count: count))
        #expect((MasterKey(secret) != nil) == (count == 32))
    }
}

@Suite("GatewaySecrets")
struct GatewaySecretsTests {
    private let store = TestDatabase().secretStore

    private static func sealed(_ secrets: [GatewaySecret]) throws -> [GatewaySecret: Envelope] {
        try secrets.reduce(into: [:]) {
            $0[$1] = try Envelope(sealing: .sample("s"), for: $1.context, under: .sample())
        }
    }

    @Test("The first start creates the secrets, and later starts read them")
    func madeOnce() async throws {
        let first = try await GatewaySecrets(store: self.store, masterKey: .sample())
        let second = try await GatewaySecrets(store: self.store, masterKey: .sample())
        #expect(first.keyPepper.revealBytes() == second.keyPepper.revealBytes())
        #expect(first.auditKey.revealBytes() == second.auditKey.revealBytes())
        #expect(first.auditKey.revealBytes() != first.keyPepper.revealBytes())
        #expect(first.auditKey.count == 32)
    }

    @Test("Another master key is refused as invalid")
    func otherMasterKey() async throws {
        _ = try await GatewaySecrets(store: self.store, masterKey: .sample())
        let error = await #expect(throws: GatewayError.self) {
            try await GatewaySecrets(store: self.store, masterKey: .sample("other"))
        }
        #expect(error?.code == .invalid)
    }

    @Test("Swapped secrets do not open")
    func exchanged() async throws {
        var stored = try Self.sealed(GatewaySecret.allCases)
        #expect(throws: Never.self) { try GatewaySecrets(stored: stored, masterKey: .sample()) }
        (stored[.auditKey], stored[.keyPepper]) = (stored[.keyPepper], stored[.auditKey])
        #expect(throws: GatewayError.self) { try GatewaySecrets(stored: stored, masterKey: .sample()) }
    }

    @Test("A store without a signing key opens, but has no audit signer")
    func withoutSigningKey() throws {
        let secrets = try GatewaySecrets(stored: Self.sealed([.auditKey, .keyPepper]), masterKey: .sample())
        #expect(throws: GatewayError.self) { try secrets.auditSigner() }
    }

    @Test("A missing secret is refused", arguments: [GatewaySecret.auditKey, .keyPepper])
    func missing(secret: GatewaySecret) throws {
        let stored = try Self.sealed(GatewaySecret.allCases.filter { $0 != secret })
        let error = #expect(throws: GatewayError.self) { try GatewaySecrets(stored: stored, masterKey: .sample()) }
        #expect(error?.code == .invalid)
    }
}
