import Crypto

/// The name that a caller gives a send, so that repeating the request never sends twice.
package struct IdempotencyKey: Sendable, Hashable {
    /// The most bytes that a key may have.
    package static let maxBytes = 255

    /// The key's SHA-256, by which alone it is kept.
    let digest: [UInt8]

    /// A key as it came: 1 to 255 printable characters of ASCII; `nil` for anything else.
    package init?(_ bytes: [UInt8]) {
        guard (1...Self.maxBytes).contains(bytes.count), bytes.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            return nil
        }
        self.digest = SHA256.hash(data: bytes).bytes
    }
}
