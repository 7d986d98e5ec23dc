package import Crypto
import StrictJSON

/// Stands for a token or topic wherever the thing itself must not appear: the first 16 bytes of a keyed hash.
package struct Pseudonym: Sendable, Hashable, CustomStringConvertible {
    package static let byteCount = 16

    package let high: UInt64
    package let low: UInt64

    fileprivate init(high: UInt64, low: UInt64) {
        (self.high, self.low) = (high, low)
    }

    /// Takes the first ``byteCount`` bytes; missing ones count as zero.
    package init(bytes: some Sequence<UInt8>) {
        var iterator = bytes.makeIterator()
        func word() -> UInt64 {
            (0..<8).reduce(0) { word, _ in word << 8 | UInt64(iterator.next() ?? 0) }
        }
        self.high = word()
        self.low = word()
    }

    /// Appends the ``byteCount`` bytes.
    package func append(to bytes: inout [UInt8]) {
        bytes.append(bigEndian: self.high)
        bytes.append(bigEndian: self.low)
    }

    /// The bytes as 32 hexadecimal digits.
    package var description: String {
        var bytes: [UInt8] = []
        self.append(to: &bytes)
        return Hex.text(bytes)
    }
}

/// Makes a tenant's pseudonyms: HMAC-SHA256 under a key derived from the audit key and the tenant's salt.
///
/// Once the salt is destroyed, a pseudonym can't be traced back to its token.
package struct Pseudonymizer: Sendable {
    private let keyed: HMAC<SHA256>
    /// Seals what must be stored of a tenant's tokens; a key of its own, lost with the salt as well.
    package let sealingKey: SymmetricKey

    package init(auditKey: Secret, tenantSalt: [UInt8]) {
        let key = auditKey.symmetricKey
        self.keyed = HMAC<SHA256>(key: key.derived(for: "fcm-gateway audit pseudonym 1", salt: tenantSalt))
        self.sealingKey = key.derived(for: "fcm-gateway token sealing 1", salt: tenantSalt)
    }

    package func pseudonym(of text: String) -> Pseudonym {
        // The key has been absorbed once; each text continues from a copy.
        var hash = self.keyed
        text.withUTF8Span { bytes in
            // Unsafe: the bytes are read while the span lives.
            unsafe bytes.withUnsafeBytes { unsafe hash.update(data: $0) }
        }
        // Unsafe: the pointer does not outlive the closure.
        return unsafe hash.finalize()
            .withUnsafeBytes { code in
                unsafe Pseudonym(
                    high: UInt64(bigEndian: code.loadUnaligned(as: UInt64.self)),
                    low: UInt64(bigEndian: code.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                )
            }
    }
}
