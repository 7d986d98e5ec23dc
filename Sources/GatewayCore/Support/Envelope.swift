import Crypto

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A secret sealed for storage: encrypted with a data key of its own, which is wrapped by the master key.
///
/// Both layers are AES-256-GCM and authenticate the secret's context, so rows that were exchanged in the store do not open.
/// A new master key rewraps the data key and leaves the secret's ciphertext alone.
package struct Envelope: Sendable, Hashable {
    /// The owner and purpose of a secret, which both layers authenticate.
    package struct Context: Sendable, Hashable {
        /// The tenant's id, or a name of the gateway's own.
        package var owner: String
        /// The kind of secret, for instance `legacy`.
        package var kind: String
        package var version: Int
        /// Further columns of the row that must not have changed since the secret was sealed; `nil` for null.
        package var details: [String?] = []

        /// Unambiguous bytes: each part follows its length, and an absent one has none.
        var authenticatedData: Data {
            var data = Data()
            for part in [self.owner, self.kind, String(self.version)] + self.details {
                data.append(contentsOf: Array((part.map { "\($0.utf8.count):\($0);" } ?? "-;").utf8))
            }
            return data
        }
    }

    /// The failure to open a secret. Reveals nothing of its content.
    package struct OpeningError: Error, Sendable, Hashable, CustomStringConvertible {
        package let context: Context

        package var description: String { "\(self.context.kind) of \(self.context.owner) does not open" }
    }

    /// Nonce, wrapped data key and tag.
    package let wrappedKey: Data
    /// Nonce, ciphertext and tag.
    package let sealed: Data

    package init(wrappedKey: Data, sealed: Data) {
        self.wrappedKey = wrappedKey
        self.sealed = sealed
    }

    /// Seals a secret under a fresh data key. The cryptographic library throws only for keys of other sizes than 256 bits.
    package init(sealing secret: Secret, for context: Context, under masterKey: MasterKey) throws {
        let dataKey = SymmetricKey(size: .bits256)
        let aad = context.authenticatedData
        let sealed = try AES.GCM.seal(secret.revealBytes(), using: dataKey, authenticating: aad)
        let wrapped = try AES.GCM.seal(Secret(dataKey).revealBytes(), using: masterKey.key, authenticating: aad)
        guard let sealedBytes = sealed.combined, let wrappedBytes = wrapped.combined else {
            throw OpeningError(context: context)
        }
        self.init(wrappedKey: wrappedBytes, sealed: sealedBytes)
    }

    /// Opens the secret with the master key or its predecessor.
    package func open(for context: Context, under masterKey: MasterKey) throws(OpeningError) -> Secret {
        let (dataKey, _) = try self.dataKey(for: context, under: masterKey)
        return try self.open(for: context, by: dataKey)
    }

    /// Returns the same secret with its data key wrapped by the master key instead of its predecessor, or `nil` if it is
    /// already. Throws also if the data key opens and the secret does not.
    package func rewrapped(for context: Context, under masterKey: MasterKey) throws(OpeningError) -> Envelope? {
        let (dataKey, isPrevious) = try self.dataKey(for: context, under: masterKey)
        // A secret that does not open must not pass as rewrapped.
        _ = try self.open(for: context, by: dataKey)
        guard isPrevious else { return nil }
        let wrapped = try? AES.GCM.seal(
            Secret(dataKey).revealBytes(),
            using: masterKey.key,
            authenticating: context.authenticatedData
        )
        guard let bytes = wrapped?.combined else { throw OpeningError(context: context) }
        return Envelope(wrappedKey: bytes, sealed: self.sealed)
    }

    private func dataKey(
        for context: Context,
        under masterKey: MasterKey
    ) throws(OpeningError) -> (key: SymmetricKey, isPrevious: Bool) {
        if let bytes = Self.opened(self.wrappedKey, by: masterKey.key, context) {
            return (SymmetricKey(data: bytes), false)
        }
        if let previous = masterKey.previous, let bytes = Self.opened(self.wrappedKey, by: previous, context) {
            return (SymmetricKey(data: bytes), true)
        }
        throw OpeningError(context: context)
    }

    private func open(for context: Context, by dataKey: SymmetricKey) throws(OpeningError) -> Secret {
        guard let bytes = Self.opened(self.sealed, by: dataKey, context) else { throw OpeningError(context: context) }
        return Secret(bytes: bytes)
    }

    private static func opened(_ bytes: Data, by key: SymmetricKey, _ context: Context) -> Data? {
        guard let box = try? AES.GCM.SealedBox(combined: bytes) else { return nil }
        return try? AES.GCM.open(box, using: key, authenticating: context.authenticatedData)
    }
}

/// The key-encryption key: 256 bits from a file or the environment, under which everything stored is sealed.
///
/// During a change of the key it also holds its predecessor: it opens secrets of both, and seals only with itself.
package struct MasterKey: Sendable {
    package static let byteCount = 32

    let key: SymmetricKey
    /// The predecessor, while secrets may still be sealed by it.
    let previous: SymmetricKey?

    /// Returns `nil` unless each key has exactly ``byteCount`` bytes.
    package init?(_ secret: Secret, previous: Secret? = nil) {
        guard secret.count == Self.byteCount, previous.map(\.count) ?? Self.byteCount == Self.byteCount else {
            return nil
        }
        self.key = secret.symmetricKey
        self.previous = previous?.symmetricKey
    }

    package var hasPrevious: Bool { self.previous != nil }

    /// Tells keys apart without revealing them: the first 16 hexadecimal digits of a keyed hash.
    package var fingerprint: String {
        let code = HMAC<SHA256>.authenticationCode(for: Array("fcm-gateway master key 1".utf8), using: self.key)
        return Hex.text(code.prefix(8))
    }
}

extension MasterKey: CustomStringConvertible, CustomReflectable {
    package var description: String { "master key \(self.fingerprint)" }
    /// A mirror without children, so that dumps reveal nothing either.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A secret that a store holds, sealed by the master key.
package struct SealedSecret: Sendable, Hashable {
    /// The place of a sealed secret in a store.
    package enum Place: Sendable, Hashable {
        case gateway(GatewaySecret)
        /// A tenant's credential for one upstream, of this version.
        case credential(TenantID, UpstreamKind, version: Int)
    }

    package let place: Place
    package let context: Envelope.Context
    package var envelope: Envelope

    package init(_ secret: GatewaySecret, _ envelope: Envelope) {
        self.place = .gateway(secret)
        self.context = secret.context
        self.envelope = envelope
    }

    /// A credential of the tenant that has this salt.
    package init(_ credential: StoredCredential, salt: [UInt8]) {
        self.place = .credential(credential.tenant, credential.kind, version: credential.version)
        self.context = credential.context(salt: salt)
        self.envelope = credential.envelope
    }

    /// Its name in messages. Reveals nothing of the secret.
    package var name: String {
        switch self.place {
        case .gateway(let secret): "the gateway's own \(secret.rawValue)"
        case .credential(let tenant, let kind, let version):
            "the \(kind.rawValue) credential of tenant \(tenant.text), version \(version)"
        }
    }
}

/// Seals rows of the directory. Write access to the store alone is not enough to make or change one.
///
/// A seal is HMAC-SHA256 over the table's name and the row's columns, under a key derived from the pepper of API keys. It
/// does not tell a row from an earlier version of the same row.
package struct RowSealer: Sendable {
    private let keyed: HMAC<SHA256>

    /// The pepper is the secret that keys the digests of API keys.
    package init(keyPepper: Secret) {
        let key = HKDF<SHA256>
            .deriveKey(
                inputKeyMaterial: keyPepper.symmetricKey,
                info: Array("fcm-gateway directory row 1".utf8),
                outputByteCount: 32
            )
        self.keyed = HMAC<SHA256>(key: key)
    }

    /// Returns the seal of a row, 32 bytes: of its columns in their order, `nil` for null, and anything else it is bound to.
    package func seal(of columns: [[UInt8]?], in table: String) -> [UInt8] {
        Array(self.code(columns, table))
    }

    package func isGenuine(_ seal: [UInt8], of columns: [[UInt8]?], in table: String) -> Bool {
        self.code(columns, table) == seal
    }

    private func code(_ columns: [[UInt8]?], _ table: String) -> HMAC<SHA256>.MAC {
        // The key has been absorbed once, and each row continues from a copy. Each part follows its length.
        var hash = self.keyed
        for part in [Array(table.utf8)] + columns {
            hash.update(data: Array("\(part?.count ?? -1):".utf8))
            if let part { hash.update(data: part) }
        }
        return hash.finalize()
    }
}

/// The changes after which one master key seals all secrets of a store. Pure.
package struct Rewrapping: Sendable {
    /// A secret as it was read, and its envelope under the new master key.
    package struct Exchange: Sendable, Hashable {
        package let old: SealedSecret
        package let new: Envelope
    }

    /// Secrets whose data key is still wrapped by the previous master key.
    package private(set) var exchanges: [Exchange] = []
    /// The number of secrets that need no change.
    package private(set) var currentCount = 0
    /// The secrets that open under neither key.
    package private(set) var unopened: [SealedSecret] = []

    /// Opens all secrets of a store. `progress` gets the number of secrets that are done.
    package init(_ secrets: [SealedSecret], under masterKey: MasterKey, progress: (_ done: Int) -> Void = { _ in }) {
        for (index, secret) in secrets.enumerated() {
            do {
                if let new = try secret.envelope.rewrapped(for: secret.context, under: masterKey) {
                    self.exchanges.append(Exchange(old: secret, new: new))
                } else {
                    self.currentCount += 1
                }
            } catch {
                self.unopened.append(secret)
            }
            progress(index + 1)
        }
    }
}
