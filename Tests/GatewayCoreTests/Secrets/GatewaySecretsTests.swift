import GatewayCore
import GatewayTestKit
import Testing

@Suite("GatewaySecrets")
struct GatewaySecretsTests {
    private let store = InMemoryDirectoryStore()

    @Test("The first start makes the secrets, later starts find them")
    func madeOnce() async throws {
        let first = try await GatewaySecrets(store: self.store, masterKey: .sample())
        let second = try await GatewaySecrets(store: self.store, masterKey: .sample())
        #expect(first.keyPepper.revealBytes() == second.keyPepper.revealBytes())
        #expect(first.auditKey.revealBytes() == second.auditKey.revealBytes())
        #expect(first.auditKey.revealBytes() != first.keyPepper.revealBytes())
        #expect(first.auditKey.count == 32)
    }

    @Test("Another master key is refused, not papered over")
    func otherMasterKey() async throws {
        _ = try await GatewaySecrets(store: self.store, masterKey: .sample())
        let error = await #expect(throws: GatewayError.self) {
            try await GatewaySecrets(store: self.store, masterKey: .sample("other"))
        }
        #expect(error?.code == .invalid)
    }

    @Test("Secrets that were exchanged for each other do not open")
    func exchanged() async throws {
        var stored: [GatewaySecret: Envelope] = [:]
        for secret in GatewaySecret.allCases {
            stored[secret] = try Envelope(sealing: .sample("s"), for: secret.context, under: .sample())
        }
        #expect(throws: Never.self) { try GatewaySecrets(stored: stored, masterKey: .sample()) }
        (stored[.auditKey], stored[.keyPepper]) = (stored[.keyPepper], stored[.auditKey])
        #expect(throws: GatewayError.self) { try GatewaySecrets(stored: stored, masterKey: .sample()) }
    }

    @Test("A store from before checkpoints opens, and has no signer")
    func withoutSigningKey() throws {
        var stored: [GatewaySecret: Envelope] = [:]
        for secret in [GatewaySecret.auditKey, .keyPepper] {
            stored[secret] = try Envelope(sealing: .sample("s"), for: secret.context, under: .sample())
        }
        let secrets = try GatewaySecrets(stored: stored, masterKey: .sample())
        #expect(throws: GatewayError.self) { try secrets.auditSigner() }
    }

    @Test("A missing secret is refused", arguments: [GatewaySecret.auditKey, .keyPepper])
    func missing(secret: GatewaySecret) throws {
        var stored: [GatewaySecret: Envelope] = [:]
        for other in GatewaySecret.allCases where other != secret {
            stored[other] = try Envelope(sealing: .sample("s"), for: other.context, under: .sample())
        }
        let error = #expect(throws: GatewayError.self) {
            try GatewaySecrets(stored: stored, masterKey: .sample())
        }
        #expect(error?.code == .invalid)
    }
}
