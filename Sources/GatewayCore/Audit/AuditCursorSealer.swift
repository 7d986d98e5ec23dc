import Crypto

/// Seals where a list of the audit goes on, since places count everybody's records.
///
/// A cursor is bound to whose list it continues, and always as long as any other.
package struct AuditCursorSealer: Sendable {
    private let key: SymmetricKey

    /// Derives the key.
    package init(auditKey: Secret) {
        self.key = HKDF<SHA256>
            .deriveKey(
                inputKeyMaterial: auditKey.symmetricKey,
                info: Array("fcm-gateway audit cursor 1".utf8),
                outputByteCount: 32
            )
    }

    /// Seals a place.
    ///
    /// - Parameters:
    ///   - position: the place.
    ///   - uid: the uid of the tenant that reads; `nil` for operators.
    /// - Returns: `nil` when the cryptographic library fails, which it does not for keys of 256 bits.
    package func seal(_ position: AuditPosition, for uid: UInt64?) -> [UInt8]? {
        let place =
            AuditBody.bytes(of: UInt64(bitPattern: Int64(position.writer)))
            + AuditBody.bytes(of: UInt64(bitPattern: Int64(position.sequence)))
        return (try? AES.GCM.seal(place, using: self.key, authenticating: Self.reader(uid)))?.combined
            .map { [UInt8]($0) }
    }

    /// Opens a place; `nil` for bytes that are none of this gateway's cursors, or somebody else's.
    package func open(_ sealed: [UInt8], for uid: UInt64?) -> AuditPosition? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed),
            let place = try? AES.GCM.open(box, using: self.key, authenticating: Self.reader(uid)), place.count == 16
        else { return nil }
        func number(_ bytes: some Sequence<UInt8>) -> Int {
            Int(truncatingIfNeeded: bytes.reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
        }
        return AuditPosition(writer: number(place.prefix(8)), sequence: number(place.suffix(8)))
    }

    private static func reader(_ uid: UInt64?) -> [UInt8] {
        uid.map { Array("tenant".utf8) + AuditBody.bytes(of: $0) } ?? Array("operator".utf8)
    }
}
