import Crypto

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A secret sealed for storage: encrypted with a data key of its own, which is wrapped by the master key.
///
/// Both layers are AES-256-GCM and authenticate what the secret belongs to, so that rows swapped in the store do not
/// open. Rotating the master key rewraps the data key and leaves the secret's ciphertext alone.
package struct Envelope: Sendable, Hashable {
    /// What a secret belongs to; part of what is authenticated.
    package struct Context: Sendable, Hashable {
        /// The tenant's id, or a name of the gateway's own.
        package var owner: String
        /// What the secret is, for instance `legacy`.
        package var kind: String
        /// Rises with every replacement.
        package var version: Int
        /// What else of the row must be as it was when the secret was sealed.
        package var details: [String?]

        /// Names a secret.
        package init(owner: String, kind: String, version: Int, details: [String?] = []) {
            self.owner = owner
            self.kind = kind
            self.version = version
            self.details = details
        }

        /// Unambiguous bytes: each part is preceded by its length, and an absent one has none.
        var authenticatedData: Data {
            var data = Data()
            for part in [self.owner, self.kind, String(self.version)] + self.details {
                data.append(contentsOf: Array((part.map { "\($0.utf8.count):\($0);" } ?? "-;").utf8))
            }
            return data
        }
    }

    /// Why a secret could not be opened; says nothing about its content.
    package struct OpeningError: Error, Sendable, Hashable, CustomStringConvertible {
        /// What was to be opened.
        package let context: Context

        /// Names what did not open.
        package var description: String { "\(self.context.kind) of \(self.context.owner) does not open" }
    }

    /// Nonce, wrapped data key and tag.
    package let wrappedKey: Data
    /// Nonce, ciphertext and tag.
    package let sealed: Data

    /// An envelope as it was stored.
    package init(wrappedKey: Data, sealed: Data) {
        self.wrappedKey = wrappedKey
        self.sealed = sealed
    }

    /// Seals a secret under a fresh data key.
    ///
    /// - Throws: what the cryptographic library throws; does not happen for keys of 256 bits.
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

    /// Opens the secret, by the master key or the one before it.
    ///
    /// - Throws: ``OpeningError`` for a wrong master key, another context, or changed bytes.
    package func open(for context: Context, under masterKey: MasterKey) throws(OpeningError) -> Secret {
        let (dataKey, _) = try self.dataKey(for: context, under: masterKey)
        return try self.open(for: context, by: dataKey)
    }

    /// The same secret with its data key wrapped by the master key itself instead of the one before it.
    ///
    /// - Returns: the envelope with another wrapped key, or `nil` when its data key is wrapped by the master key already.
    /// - Throws: ``OpeningError`` when neither key opens it, or what they open does not open the secret.
    package func rewrapped(for context: Context, under masterKey: MasterKey) throws(OpeningError) -> Envelope? {
        let (dataKey, isPrevious) = try self.dataKey(for: context, under: masterKey)
        // What does not open now must not be taken along as if it did.
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

    /// The data key, and whether the previous master key was needed for it.
    private func dataKey(
        for context: Context,
        under masterKey: MasterKey
    ) throws(OpeningError) -> (key: SymmetricKey, isPrevious: Bool) {
        let aad = context.authenticatedData
        func unwrap(_ key: SymmetricKey) -> SymmetricKey? {
            guard let box = try? AES.GCM.SealedBox(combined: self.wrappedKey),
                let bytes = try? AES.GCM.open(box, using: key, authenticating: aad)
            else { return nil }
            return SymmetricKey(data: bytes)
        }
        if let key = unwrap(masterKey.key) { return (key, false) }
        if let previous = masterKey.previous, let key = unwrap(previous) { return (key, true) }
        throw OpeningError(context: context)
    }

    private func open(for context: Context, by dataKey: SymmetricKey) throws(OpeningError) -> Secret {
        guard let box = try? AES.GCM.SealedBox(combined: self.sealed),
            let bytes = try? AES.GCM.open(box, using: dataKey, authenticating: context.authenticatedData)
        else { throw OpeningError(context: context) }
        return Secret(bytes: bytes)
    }
}
