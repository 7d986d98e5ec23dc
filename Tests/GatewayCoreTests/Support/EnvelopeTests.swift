import Foundation
import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("Envelope")
struct EnvelopeTests {
    private static let context = Envelope.Context(owner: "acme", kind: "credential/legacy", version: 1)

    private func seal(_ text: String = "server-key", for context: Envelope.Context = context) throws -> Envelope {
        try Envelope(sealing: Secret(text), for: context, under: .sample())
    }

    @Test("A sealed secret opens again", arguments: ["server-key", "", String(repeating: "ü", count: 10_000)])
    func roundTrip(text: String) throws {
        let opened = try self.seal(text).open(for: Self.context, under: .sample())
        #expect(opened.revealText() == text)
    }

    @Test("Two envelopes of one secret differ, and the sealed part does not contain the secret's text")
    func fresh() throws {
        let first = try self.seal()
        let second = try self.seal()
        #expect(first.sealed != second.sealed)
        #expect(first.wrappedKey != second.wrappedKey)
        #expect(first.sealed.range(of: Data("server-key".utf8)) == nil)
    }

    @Test("Another master key does not open an envelope")
    func otherMasterKey() throws {
        let envelope = try self.seal()
        #expect(throws: Envelope.OpeningError(context: Self.context)) {
            try envelope.open(for: Self.context, under: .sample("other"))
        }
    }

    @Test(
        "An envelope opens only for the context that it was sealed for",
        arguments: [
            Envelope.Context(owner: "acmf", kind: "credential/legacy", version: 1),
            Envelope.Context(owner: "acme", kind: "credential/v1", version: 1),
            Envelope.Context(owner: "acme", kind: "credential/legacy", version: 2),
            Envelope.Context(owner: "", kind: "credential/legacy", version: 1),
            Envelope.Context(owner: "acme17:credential/legacy", kind: "", version: 1),
            Envelope.Context(owner: "acme;17:credential/legacy", kind: "", version: 1),
        ]
    )
    func otherContext(context: Envelope.Context) throws {
        let envelope = try self.seal()
        #expect(throws: Envelope.OpeningError(context: context)) {
            try envelope.open(for: context, under: .sample())
        }
    }

    @Test("Contexts with equal concatenated parts are different")
    func ambiguousContexts() throws {
        let envelope = try self.seal(for: Envelope.Context(owner: "ab", kind: "c", version: 1))
        #expect(throws: Envelope.OpeningError.self) {
            try envelope.open(for: Envelope.Context(owner: "a", kind: "bc", version: 1), under: .sample())
        }
    }

    @Test("An envelope with a changed byte does not open")
    func flippedBytes() throws {
        let envelope = try self.seal()
        for index in envelope.wrappedKey.indices {
            var wrappedKey = envelope.wrappedKey
            wrappedKey[index] ^= 0x01
            let changed = Envelope(wrappedKey: wrappedKey, sealed: envelope.sealed)
            #expect(throws: Envelope.OpeningError.self) { try changed.open(for: Self.context, under: .sample()) }
        }
        for index in envelope.sealed.indices {
            var sealed = envelope.sealed
            sealed[index] ^= 0x80
            let changed = Envelope(wrappedKey: envelope.wrappedKey, sealed: sealed)
            #expect(throws: Envelope.OpeningError.self) { try changed.open(for: Self.context, under: .sample()) }
        }
    }

    @Test("A truncated or extended envelope does not open", arguments: [0, 1, 11, 12, 27, 28])
    func wrongLengths(length: Int) throws {
        let envelope = try self.seal()
        for changed in [
            Envelope(wrappedKey: envelope.wrappedKey.prefix(length), sealed: envelope.sealed),
            Envelope(wrappedKey: envelope.wrappedKey, sealed: envelope.sealed.prefix(length)),
            Envelope(wrappedKey: envelope.wrappedKey + [0], sealed: envelope.sealed),
            Envelope(wrappedKey: envelope.wrappedKey, sealed: envelope.sealed + [0]),
        ] {
            #expect(throws: Envelope.OpeningError.self) { try changed.open(for: Self.context, under: .sample()) }
        }
    }

    @Test("Envelopes that were swapped whole or in part do not open")
    func swappedRows() throws {
        let other = Envelope.Context(owner: "globex", kind: "credential/legacy", version: 1)
        let (mine, theirs) = (try self.seal("mine"), try self.seal("theirs", for: other))
        for swapped in [
            theirs, Envelope(wrappedKey: mine.wrappedKey, sealed: theirs.sealed),
            Envelope(wrappedKey: theirs.wrappedKey, sealed: mine.sealed),
        ] {
            #expect(throws: Envelope.OpeningError.self) { try swapped.open(for: Self.context, under: .sample()) }
        }
        let again = try self.seal("mine too")
        let mixed = Envelope(wrappedKey: mine.wrappedKey, sealed: again.sealed)
        #expect(throws: Envelope.OpeningError.self) { try mixed.open(for: Self.context, under: .sample()) }
    }
}

@Suite("Rewrapping")
struct RewrappingTests {
    private let old: MasterKey
    private let new: MasterKey
    /// The new key, with the old one as its previous key.
    private let both: MasterKey

    init() throws {
        self.old = try .sample("old")
        self.new = try .sample("new")
        self.both = try #require(MasterKey(.sample("new"), previous: .sample("old")))
    }

    private func credential(
        _ text: String,
        _ kind: UpstreamKind,
        version: Int,
        under key: MasterKey
    ) throws -> SealedSecret {
        var credential = StoredCredential(
            tenant: try .sample(),
            kind: kind,
            version: version,
            envelope: Envelope(wrappedKey: Data(), sealed: Data()),
            endpoint: nil,
            fingerprint: "",
            createdAt: .sample
        )
        credential.envelope = try Envelope(sealing: Secret(text), for: credential.context(salt: []), under: key)
        return SealedSecret(credential, salt: [])
    }

    /// The gateway's three secrets and a tenant's two credentials.
    private func secrets(under key: MasterKey) throws -> [SealedSecret] {
        let own = try GatewaySecret.allCases.enumerated()
            .map { index, secret in
                let envelope = try Envelope(sealing: Secret("secret \(index)"), for: secret.context, under: key)
                return SealedSecret(secret, envelope)
            }
        let legacy = try self.credential("secret 3", .legacy, version: 1, under: key)
        let v1 = try self.credential("secret 4", .v1, version: 7, under: key)
        return own + [legacy, v1]
    }

    @Test("A rewrapped secret has the same content and opens only under the new key")
    func moves() throws {
        let secrets = try self.secrets(under: self.old)
        var progress: [Int] = []
        let plan = Rewrapping(secrets, under: self.both) { progress.append($0) }
        #expect(progress == [1, 2, 3, 4, 5])
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

    @Test("Rewrapping again changes nothing, and a partial rewrapping continues with the rest")
    func again() throws {
        let secrets = try self.secrets(under: self.new)
        let done = Rewrapping(secrets, under: self.both)
        #expect(done.exchanges.isEmpty)
        #expect(done.currentCount == secrets.count)
        // This does not need the old key.
        #expect(Rewrapping(secrets, under: self.new).currentCount == secrets.count)
        let mixed = Array(secrets.prefix(3)) + Array(try self.secrets(under: self.old).suffix(1))
        let rest = Rewrapping(mixed, under: self.both)
        #expect(rest.exchanges.map(\.old) == Array(mixed.suffix(1)))
        #expect(rest.currentCount == 3)
    }

    @Test("Secrets that open under neither key are reported and not rewrapped")
    func unopened() throws {
        var secrets = try self.secrets(under: self.old)
        let foreign = try self.credential("x", .v1, version: 8, under: .sample("third"))
        // Swapped rows: one has another row's envelope, the other only another row's sealed text.
        let (legacy, v1) = (secrets[3], secrets[4])
        secrets[3].envelope = v1.envelope
        secrets[4].envelope = Envelope(wrappedKey: v1.envelope.wrappedKey, sealed: legacy.envelope.sealed)
        let plan = Rewrapping(secrets + [foreign], under: self.both)
        #expect(plan.unopened == [secrets[3], secrets[4], foreign])
        #expect(plan.exchanges.count == 3)
        #expect(Rewrapping(secrets, under: self.new).unopened == secrets)
    }

    @Test("Envelopes that are swapped after rewrapping do not open")
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

    @Test("During a key change secrets of both keys open, and only the new key seals")
    func overlap() throws {
        for secret in try self.secrets(under: self.old) + self.secrets(under: self.new) {
            #expect(throws: Never.self) { try secret.envelope.open(for: secret.context, under: self.both) }
        }
        let fresh = try self.credential("fresh", .legacy, version: 2, under: self.both)
        #expect(try fresh.envelope.open(for: fresh.context, under: self.new).revealText() == "fresh")
        #expect(throws: Envelope.OpeningError.self) { try fresh.envelope.open(for: fresh.context, under: self.old) }
    }

    @Test("During a key change the old key's store opens, with the same pepper and audit key")
    func ownSecrets() async throws {
        let store = TestDatabase().secretStore
        let made = try await GatewaySecrets(store: store, masterKey: self.old)
        let opened = try await GatewaySecrets(store: store, masterKey: self.both)
        #expect(opened.keyPepper.revealBytes() == made.keyPepper.revealBytes())
        #expect(opened.auditKey.revealBytes() == made.auditKey.revealBytes())
    }

    @Test("The description of a master key shows only its fingerprint")
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

struct RowSealerTests {
    private let sealer = RowSealer(keyPepper: .sample("pepper"))

    @Test("Rows that differ in columns, tables or null values have different seals")
    func distinct() {
        let rows: [([[UInt8]?], String)] = [
            ([[1, 2], [3]], "a"), ([[1], [2, 3]], "a"), ([[1, 2, 3]], "a"), ([[1, 2], [3], nil], "a"),
            ([[1, 2], [3], []], "a"), ([nil, [1, 2], [3]], "a"), ([[1, 2], [3]], "b"), ([[], []], "a"),
            ([nil, nil], "a"),
            ([], "a"), ([Array("1:a".utf8)], ""),
        ]
        #expect(Set(rows.map { self.sealer.seal(of: $0.0, in: $0.1) }).count == rows.count)
        for (columns, table) in rows {
            let seal = self.sealer.seal(of: columns, in: table)
            #expect(seal.count == 32)
            #expect(self.sealer.isGenuine(seal, of: columns, in: table))
            #expect(!self.sealer.isGenuine([], of: columns, in: table))
            #expect(!RowSealer(keyPepper: .sample("other")).isGenuine(seal, of: columns, in: table))
        }
    }
}
