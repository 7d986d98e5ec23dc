import Crypto
import FCMModel

/// A tenant's key in clear: `fgw_<id>_<secret>_<checksum>`.
///
/// The checksum lets a mistyped key, and a scanner that looks for leaked ones, be judged without a look-up.
package struct APIKey: Sendable {
    /// Turns keys into the digests that are stored in their place.
    package struct Pepper: Sendable {
        private let keyed: HMAC<SHA256>

        package init(_ secret: Secret) {
            self.keyed = HMAC<SHA256>(key: secret.symmetricKey)
        }

        package func digest(of key: APIKey) -> [UInt8] {
            Array(self.code(of: key.secret.revealBytes()[...]))
        }

        /// True if a key's bytes have this digest. Takes constant time.
        package func matches(_ key: ArraySlice<UInt8>, digest: [UInt8]) -> Bool {
            self.code(of: key) == digest
        }

        /// The code of a secret text, bound to another text before it.
        func code(of key: ArraySlice<UInt8>, after text: String = "") -> HMAC<SHA256>.MAC {
            // The secret has been absorbed once; each key continues from a copy.
            var hash = self.keyed
            if !text.isEmpty { hash.update(data: Array(text.utf8)) }
            hash.update(data: key)
            return hash.finalize()
        }
    }

    /// An operator's settings for a key. The members are those of ``Record``.
    package struct Draft: Sendable, Hashable {
        /// The most prefixes of a key. Each condition is compared with all of them.
        package static let maxTopicPrefixes = 100

        package var name: String
        package var scopes: Set<Scope>
        package var topicPrefixes: [String]
        package var expiresAt: Timestamp?

        package init(name: String, scopes: Set<Scope>, topicPrefixes: [String] = [], expiresAt: Timestamp? = nil) {
            self.name = name
            self.scopes = scopes
            self.topicPrefixes = topicPrefixes
            self.expiresAt = expiresAt
        }
    }

    package static let prefix = "fgw_"
    /// `a-z0-9`.
    package static let idLength = 10
    /// Base62, 256 bits.
    package static let secretLength = 43
    /// Base62 of the CRC-32 of all before the last underscore.
    package static let checksumLength = 6

    package let id: String
    package let secret: Secret

    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let id = Self.id(in: bytes[...]) else { return nil }
        self.id = id
        self.secret = Secret(bytes: bytes)
    }

    private static let secretOffset = Self.prefix.utf8.count + Self.idLength + 1
    private static let checksumOffset = Self.secretOffset + Self.secretLength + 1

    /// The id in the bytes of a key's text; `nil` for a wrong form or checksum.
    package static func id(in bytes: ArraySlice<UInt8>) -> String? {
        guard let id = Self.unverifiedID(in: bytes), id.utf8.allSatisfy(\.isLowerAlphanumeric) else { return nil }
        let (secretStart, checksumStart) = (
            bytes.startIndex + Self.secretOffset, bytes.startIndex + Self.checksumOffset
        )
        guard bytes.starts(with: Self.prefix.utf8), bytes[secretStart - 1] == UInt8(ascii: "_"),
            bytes[checksumStart - 1] == UInt8(ascii: "_"),
            bytes[secretStart..<checksumStart - 1].allSatisfy({ $0.isLetter || $0.isDigit }),
            Base62.number(bytes[checksumStart...]) == UInt64(CRC32.checksum(bytes[..<(checksumStart - 1)]))
        else { return nil }
        return id
    }

    /// The text in the place of the id; `nil` for a wrong length. A key whose digest matches needs no other check.
    static func unverifiedID(in bytes: ArraySlice<UInt8>) -> String? {
        guard bytes.count == Self.checksumOffset + Self.checksumLength else { return nil }
        return String(decoding: bytes.dropFirst(Self.prefix.utf8.count).prefix(Self.idLength), as: UTF8.self)
    }

    private init(id: String, secretText: String) {
        let body = "\(Self.prefix)\(id)_\(secretText)"
        self.id = id
        let checksum = CRC32.checksum(Array(body.utf8)[...])
        self.secret = Secret("\(body)_\(Base62.text(checksum, width: Self.checksumLength))")
    }

    package static func generate() -> APIKey {
        var generator = SystemRandomNumberGenerator()
        func text(_ alphabet: ArraySlice<UInt8>, _ length: Int) -> String {
            String(decoding: (0..<length).compactMap { _ in alphabet.randomElement(using: &generator) }, as: UTF8.self)
        }
        let idAlphabet = Base62.alphabet[..<10] + Base62.alphabet[36...]
        return APIKey(id: text(idAlphabet, Self.idLength), secretText: text(Base62.alphabet[...], Self.secretLength))
    }
}

extension APIKey {
    /// A key as it is stored: everything but the key itself.
    package struct Record: Sendable, Hashable {
        package var id: String
        package var tenant: TenantID
        /// Its name for people.
        package var name: String
        /// ``Pepper/digest(of:)``.
        package var digest: [UInt8]
        package var scopes: Set<Scope>
        /// Topics that it may address, by prefix; empty means all.
        package var topicPrefixes: [String]
        package var createdAt: Timestamp
        /// The time from which it is refused.
        package var expiresAt: Timestamp?
        package var revokedAt: Timestamp?

        package init(
            id: String,
            tenant: TenantID,
            name: String,
            digest: [UInt8],
            scopes: Set<Scope>,
            topicPrefixes: [String],
            createdAt: Timestamp,
            expiresAt: Timestamp? = nil,
            revokedAt: Timestamp? = nil
        ) {
            self.id = id
            self.tenant = tenant
            self.name = name
            self.digest = digest
            self.scopes = scopes
            self.topicPrefixes = topicPrefixes
            self.createdAt = createdAt
            self.expiresAt = expiresAt
            self.revokedAt = revokedAt
        }

        package func isAlive(at now: Timestamp) -> Bool {
            if self.revokedAt != nil { return false }
            guard let expiresAt = self.expiresAt else { return true }
            return now < expiresAt
        }

        package func mayAddress(topic: String) -> Bool {
            self.topicPrefixes.isEmpty || self.topicPrefixes.contains { topic.hasPrefix($0) }
        }
    }
}

/// A right of a key.
package enum Scope: String, Sendable, Hashable, CaseIterable {
    case sendMessages = "messages:send"
    case manageDeviceGroups = "device-groups:manage"
    case manageTopics = "topics:manage"
    case readAudit = "audit:read"
    case readTokens = "tokens:read"
    case manageTokens = "tokens:manage"
    case manageBatches = "batches:manage"
}
