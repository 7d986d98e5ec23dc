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

    @Test("The same secret looks different each time, and never like itself")
    func fresh() throws {
        let first = try self.seal()
        let second = try self.seal()
        #expect(first.sealed != second.sealed)
        #expect(first.wrappedKey != second.wrappedKey)
        #expect(first.sealed.range(of: Data("server-key".utf8)) == nil)
    }

    @Test("Another master key does not open it")
    func otherMasterKey() throws {
        let envelope = try self.seal()
        #expect(throws: Envelope.OpeningError(context: Self.context)) {
            try envelope.open(for: Self.context, under: .sample("other"))
        }
    }

    @Test(
        "It opens for nothing else than it was sealed for",
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

    @Test("Contexts whose parts run together differ all the same")
    func ambiguousContexts() throws {
        let envelope = try self.seal(for: Envelope.Context(owner: "ab", kind: "c", version: 1))
        #expect(throws: Envelope.OpeningError.self) {
            try envelope.open(for: Envelope.Context(owner: "a", kind: "bc", version: 1), under: .sample())
        }
    }

    @Test("No byte of it can be changed")
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

    @Test("It can't be cut short or continued", arguments: [0, 1, 11, 12, 27, 28])
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

    @Test("Rows that were swapped, whole or by halves, do not open")
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
