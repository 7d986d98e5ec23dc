import Foundation
import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("Rewrapping")
struct RewrappingTests {
    private let old: MasterKey
    private let new: MasterKey
    /// The new key, with the old one before it.
    private let both: MasterKey

    init() throws {
        self.old = try .sample("old")
        self.new = try .sample("new")
        self.both = try #require(MasterKey(.sample("new"), previous: .sample("old")))
    }

    private func secret(_ text: String, at place: SealedSecret.Place, under key: MasterKey) throws -> SealedSecret {
        var secret = SealedSecret(place: place, envelope: Envelope(wrappedKey: Data(), sealed: Data()))
        secret.envelope = try Envelope(sealing: Secret(text), for: secret.context, under: key)
        return secret
    }

    private func secrets(under key: MasterKey) throws -> [SealedSecret] {
        let places: [SealedSecret.Place] =
            GatewaySecret.allCases.map { .gateway($0) }
            + [.credential(try .sample(), .legacy, version: 1), .credential(try .sample(), .v1, version: 7)]
        return try places.enumerated().map { try self.secret("secret \($0)", at: $1, under: key) }
    }

    @Test("What the old key sealed opens by the new one alone afterwards, and is the same")
    func moves() throws {
        let secrets = try self.secrets(under: self.old)
        let plan = Rewrapping(secrets, under: self.both)
        #expect(plan.exchanges.map(\.old) == secrets)
        #expect(plan.currentCount == 0)
        #expect(plan.unopened.isEmpty)
        for (index, exchange) in plan.exchanges.enumerated() {
            let context = exchange.old.context
            #expect(try exchange.new.open(for: context, under: self.new).revealText() == "secret \(index)")
            #expect(throws: Envelope.OpeningError.self) { try exchange.new.open(for: context, under: self.old) }
            #expect(exchange.new.sealed == exchange.old.envelope.sealed)
            #expect(exchange.new.wrappedKey != exchange.old.envelope.wrappedKey)
        }
    }

    @Test("A second time there is nothing to do, and halfway through only the rest")
    func again() throws {
        let secrets = try self.secrets(under: self.new)
        let done = Rewrapping(secrets, under: self.both)
        #expect(done.exchanges.isEmpty)
        #expect(done.currentCount == secrets.count)
        // The old key is not needed for it.
        #expect(Rewrapping(secrets, under: self.new).currentCount == secrets.count)
        let mixed = Array(secrets.prefix(3)) + Array(try self.secrets(under: self.old).suffix(1))
        let rest = Rewrapping(mixed, under: self.both)
        #expect(rest.exchanges.map(\.old) == Array(mixed.suffix(1)))
        #expect(rest.currentCount == 3)
    }

    @Test("What opens by neither key is named, and never made to look as if it did")
    func unopened() throws {
        var secrets = try self.secrets(under: self.old)
        let foreign = try self.secret("x", at: .credential(try .sample(), .v1, version: 8), under: try .sample("third"))
        // Rows that were exchanged, whole or by halves, whose data keys open for somebody else, or only by themselves.
        let (legacy, v1) = (secrets[3], secrets[4])
        secrets[3].envelope = v1.envelope
        secrets[4].envelope = Envelope(wrappedKey: v1.envelope.wrappedKey, sealed: legacy.envelope.sealed)
        let plan = Rewrapping(secrets + [foreign], under: self.both)
        #expect(plan.unopened == [secrets[3], secrets[4], foreign])
        #expect(plan.exchanges.count == 3)
        #expect(Rewrapping(secrets, under: self.new).unopened == secrets)
    }

    @Test("Rewrapped rows that are exchanged afterwards do not open either")
    func swappedAfterwards() throws {
        let plan = Rewrapping(try self.secrets(under: self.old), under: self.both)
        for one in plan.exchanges {
            for other in plan.exchanges where other.old != one.old {
                for swapped in [
                    other.new, Envelope(wrappedKey: other.new.wrappedKey, sealed: one.new.sealed),
                    Envelope(wrappedKey: one.new.wrappedKey, sealed: other.new.sealed),
                ] {
                    #expect(throws: Envelope.OpeningError.self) {
                        try swapped.open(for: one.old.context, under: self.both)
                    }
                }
            }
        }
    }

    @Test("While the key is changed, both are opened and only the new one seals")
    func overlap() throws {
        for secret in try self.secrets(under: self.old) + self.secrets(under: self.new) {
            #expect(throws: Never.self) { try secret.envelope.open(for: secret.context, under: self.both) }
        }
        let fresh = try self.secret("fresh", at: .credential(try .sample(), .legacy, version: 2), under: self.both)
        #expect(try fresh.envelope.open(for: fresh.context, under: self.new).revealText() == "fresh")
        #expect(throws: Envelope.OpeningError.self) { try fresh.envelope.open(for: fresh.context, under: self.old) }
    }

    @Test("Progress counts every secret")
    func progress() throws {
        var seen: [Int] = []
        _ = Rewrapping(try self.secrets(under: self.old), under: self.both) { seen.append($0) }
        #expect(seen == [1, 2, 3, 4, 5])
    }

    @Test("A store that the old key made opens with both, and keeps pepper and audit key")
    func ownSecrets() async throws {
        let store = InMemoryDirectoryStore()
        let made = try await GatewaySecrets(store: store, masterKey: self.old)
        let opened = try await GatewaySecrets(store: store, masterKey: self.both)
        #expect(opened.keyPepper.revealBytes() == made.keyPepper.revealBytes())
        #expect(opened.auditKey.revealBytes() == made.auditKey.revealBytes())
    }

    @Test("A master key shows its fingerprint and nothing else")
    func shown() throws {
        #expect(self.both.fingerprint == self.new.fingerprint)
        #expect(self.both.fingerprint != self.old.fingerprint)
        #expect(self.new.fingerprint.count == 16)
        let secret = Secret.sample("new")
        var text = "\(self.both) \(String(reflecting: self.both))"
        dump(self.both, to: &text)
        dump([self.both], to: &text)
        for form in [Hex.text(secret.revealBytes()), Data(secret.revealBytes()).base64EncodedString()] {
            #expect(!text.contains(form))
        }
        #expect(text.contains(self.new.fingerprint))
        #expect(Mirror(reflecting: self.both).children.isEmpty)
        #expect(MasterKey(.sample("new"), previous: Secret("short")) == nil)
    }
}
