package import Crypto

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A secret in memory that is wiped when it is released. It never appears in text.
package struct Secret: Sendable {
    private let key: SymmetricKey

    package init(bytes: some ContiguousBytes) {
        self.key = SymmetricKey(data: bytes)
    }

    package init(_ key: SymmetricKey) {
        self.key = key
    }

    package init(_ text: String) {
        self.init(bytes: Array(text.utf8))
    }

    package init(randomBytes count: Int) {
        self.key = SymmetricKey(size: SymmetricKeySize(bitCount: count * 8))
    }

    package var symmetricKey: SymmetricKey { self.key }

    package var count: Int { self.key.bitCount / 8 }

    /// For the moment of writing it to a wire. Don't keep the text.
    package func revealText() -> String {
        String(decoding: self.revealBytes(), as: UTF8.self)
    }

    /// For the moment of use. Don't keep the bytes.
    package func revealBytes() -> [UInt8] {
        // The pointer does not outlive the closure. The caller asked for the copy.
        unsafe self.key.withUnsafeBytes { unsafe Array($0) }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<redacted>" }
    package var debugDescription: String { "<redacted>" }
    /// A mirror without children, so that dumps don't show the secret either.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension SymmetricKey {
    /// A key of 256 bits for one use (HKDF, RFC 5869).
    package func derived(for use: String, salt: [UInt8] = []) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: self, salt: salt, info: Array(use.utf8), outputByteCount: 32)
    }
}
