import Testing

@testable import GatewayAudit

struct AuditCheckpointTests {
    private static let hash = [UInt8](repeating: 0xAB, count: 32)

    private static let sample = AuditCheckpoint(
        number: 721,
        time: .init(microseconds: 1_790_000_000_000_001),
        previous: Self.hash,
        settledWriter: 3,
        settledDigest: Self.hash,
        removedWriter: 1,
        heads: [
            .init(writer: 4, sequence: 10, hash: Self.hash, state: .open),
            .init(writer: 5, sequence: 3, hash: Self.hash, state: .recovered),
        ],
        truncations: [.init(writer: 4, sequence: 2, hash: Self.hash)]
    )

    @Test("A checkpoint is read back from its text")
    func roundTrip() {
        #expect(AuditCheckpoint(text: Self.sample.text) == Self.sample)
    }

    @Test("A text with a changed, missing or added byte never parses as the same checkpoint")
    func everyByte() {
        let text = Self.sample.text
        for index in text.indices {
            var changed = text
            changed[index] ^= 1
            #expect(AuditCheckpoint(text: changed) != Self.sample, "byte \(index)")
            var shorter = text
            shorter.remove(at: index)
            #expect(AuditCheckpoint(text: shorter) != Self.sample, "without byte \(index)")
            var longer = text
            longer.insert(UInt8(ascii: " "), at: index)
            #expect(AuditCheckpoint(text: longer) != Self.sample, "with a space at \(index)")
        }
        #expect(AuditCheckpoint(text: text + text) == nil)
        #expect(AuditCheckpoint(text: []) == nil)
        #expect(AuditCheckpoint(text: [0xFF]) == nil)
    }

    @Test("A signature is genuine only for its own text and key, and malformed keys are refused")
    func signatures() throws {
        let signer = try AuditSigner(signingKey: Secret(randomBytes: 32))
        let other = try AuditSigner(signingKey: Secret(randomBytes: 32))
        let signed = try signer.sign(Self.sample)
        #expect(signer.publicKey.isGenuine(signed.signature, of: signed.text))
        #expect(!other.publicKey.isGenuine(signed.signature, of: signed.text))
        #expect(!signer.publicKey.isGenuine(signed.signature, of: signed.text + [0]))
        #expect(!signer.publicKey.isGenuine([], of: signed.text))
        let key = try #require(AuditPublicKey(base64: " \(signer.publicKey.base64)\n"))
        #expect(key.isGenuine(signed.signature, of: signed.text))
        for text in ["", "AAAA", "not base64", String(signer.publicKey.base64.dropLast(4))] {
            #expect(AuditPublicKey(base64: text) == nil)
        }
        #expect(throws: GatewayError.self) { try AuditSigner(signingKey: Secret(randomBytes: 31)) }
    }
}
