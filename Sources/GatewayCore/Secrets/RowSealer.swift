import Crypto

/// Seals rows of the directory, so that a writer to the store who lacks the master key can neither make nor change one.
///
/// A seal is HMAC-SHA256 over the table's name and the row's columns, under a key that is derived from the pepper of API
/// keys. It does not tell a row from an earlier version of the same row.
package struct RowSealer: Sendable {
    private let keyed: HMAC<SHA256>

    /// Derives the key.
    ///
    /// - Parameter keyPepper: the secret that keys the digests of API keys.
    package init(keyPepper: Secret) {
        self.keyed = HMAC<SHA256>(
            key: HKDF<SHA256>
                .deriveKey(
                    inputKeyMaterial: keyPepper.symmetricKey,
                    info: Array("fcm-gateway directory row 1".utf8),
                    outputByteCount: 32
                )
        )
    }

    /// Seals a row.
    ///
    /// - Parameters:
    ///   - columns: the row's columns in their order, `nil` for null, and whatever else the row is bound to.
    ///   - table: keeps rows of different tables apart.
    /// - Returns: 32 bytes.
    package func seal(of columns: [[UInt8]?], in table: String) -> [UInt8] {
        Array(self.code(columns, table))
    }

    /// Whether a row has this seal, in constant time.
    package func isGenuine(_ seal: [UInt8], of columns: [[UInt8]?], in table: String) -> Bool {
        self.code(columns, table) == seal
    }

    private func code(_ columns: [[UInt8]?], _ table: String) -> HMAC<SHA256>.MAC {
        // The key has been absorbed once; each row continues from a copy. Each part is preceded by its length.
        var hash = self.keyed
        for part in [Array(table.utf8)] + columns {
            hash.update(data: Array("\(part?.count ?? -1):".utf8))
            if let part { hash.update(data: part) }
        }
        return hash.finalize()
    }
}
