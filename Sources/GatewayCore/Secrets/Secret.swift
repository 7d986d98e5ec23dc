package import Crypto

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A secret that is held in memory that is wiped when released, and that never shows itself in text.
package struct Secret: Sendable {
    private let key: SymmetricKey

    /// Takes the secret's bytes.
    package init(bytes: some ContiguousBytes) {
        self.key = SymmetricKey(data: bytes)
    }

    /// Takes a key.
    package init(_ key: SymmetricKey) {
        self.key = key
    }

    /// Takes a secret text.
    package init(_ text: String) {
        self.init(bytes: Array(text.utf8))
    }

    /// A fresh random secret.
    package init(randomBytes count: Int) {
        self.key = SymmetricKey(size: SymmetricKeySize(bitCount: count * 8))
    }

    /// The secret as a key for cryptographic use.
    package var symmetricKey: SymmetricKey { self.key }

    /// How many bytes the secret has.
    package var count: Int { self.key.bitCount / 8 }

    /// A copy of the secret as text, for the moment it is written to a wire; do not keep it.
    package func revealText() -> String {
        String(decoding: self.revealBytes(), as: UTF8.self)
    }

    /// A copy of the secret's bytes, for the moment they are needed; do not keep it.
    package func revealBytes() -> [UInt8] {
        // The pointer does not outlive the closure; the copy is what the caller asked for.
        unsafe self.key.withUnsafeBytes { unsafe Array($0) }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A constant that tells nothing.
    package var description: String { "<redacted>" }
    /// A constant that tells nothing.
    package var debugDescription: String { "<redacted>" }
    /// A mirror without children, so that dumps tell nothing either.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
