import FCMModel

/// A tenant's key in clear: `fgw_<id>_<secret>_<checksum>`.
///
/// The checksum lets a mistyped key, and a scanner that looks for leaked ones, be judged without a look-up.
package struct APIKey: Sendable {
    /// What every key starts with.
    package static let prefix = "fgw_"
    /// The length of the id: `a-z0-9`.
    package static let idLength = 10
    /// The length of the secret: base62, 256 bits.
    package static let secretLength = 43
    /// The length of the checksum: base62 of the CRC-32 of all before the last underscore.
    package static let checksumLength = 6

    /// The public part that names the key.
    package let id: String
    /// The whole key.
    package let secret: Secret

    /// Reads a key's text; `nil` for a wrong form or checksum.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let id = Self.id(in: bytes[...]) else { return nil }
        self.id = id
        self.secret = Secret(bytes: bytes)
    }

    /// The id in the bytes of a key's text; `nil` for a wrong form or checksum.
    ///
    /// Every request comes by here, so this is a walk over an array and nothing cleverer.
    package static func id(in bytes: ArraySlice<UInt8>) -> String? {
        let start = bytes.startIndex
        let idStart = start + Self.prefix.utf8.count
        let secretStart = idStart + Self.idLength + 1
        let checksumStart = secretStart + Self.secretLength + 1
        guard bytes.endIndex == checksumStart + Self.checksumLength, bytes.starts(with: Self.prefix.utf8),
            bytes[secretStart - 1] == UInt8(ascii: "_"), bytes[checksumStart - 1] == UInt8(ascii: "_")
        else { return nil }
        let id = bytes[idStart..<secretStart - 1]
        guard id.allSatisfy(\.isLowerAlphanumeric), bytes[secretStart..<checksumStart - 1].allSatisfy(Base62.contains),
            Base62.number(bytes[checksumStart...]) == UInt64(CRC32.checksum(bytes[..<(checksumStart - 1)]))
        else { return nil }
        return String(decoding: id, as: UTF8.self)
    }

    private init(id: String, secretText: String) {
        let body = "\(Self.prefix)\(id)_\(secretText)"
        self.id = id
        self.secret = Secret("\(body)_\(Self.checksum(of: Array(body.utf8)[...]))")
    }

    /// Makes a new random key.
    package static func generate() -> APIKey {
        var generator = SystemRandomNumberGenerator()
        func text(_ alphabet: ArraySlice<UInt8>, _ length: Int) -> String {
            String(decoding: (0..<length).compactMap { _ in alphabet.randomElement(using: &generator) }, as: UTF8.self)
        }
        let idAlphabet = Base62.alphabet[..<10] + Base62.alphabet[36...]
        return APIKey(
            id: text(idAlphabet, Self.idLength),
            secretText: text(Base62.alphabet[...], Self.secretLength)
        )
    }

    private static func checksum(of bytes: ArraySlice<UInt8>) -> String {
        Base62.text(CRC32.checksum(bytes), width: Self.checksumLength)
    }
}
