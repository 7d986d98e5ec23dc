import Crypto

/// Seals a tenant's retired tokens for storage, so that no store or backup holds a token in clear.
///
/// The key is derived from the audit key and the tenant's salt: with the salt destroyed, nothing opens any more. What is
/// sealed is bound to its tenant and its place, so that rows can't be exchanged.
package struct RetiredTokenSealer: Sendable {
    /// The bytes before a token that tell its length.
    private static let lengthBytes = 4

    private let key: SymmetricKey
    private let tenant: String

    /// The sealer of a tenant.
    package init(of profile: TenantProfile) {
        self.key = profile.pseudonymizer.sealingKey
        self.tenant = profile.id.text
    }

    /// Seals a token and its replacement.
    ///
    /// - Returns: `nil` when the cryptographic library fails, which it does not for keys of 256 bits.
    package func seal(_ token: String, replacement: String?, at key: UInt64) -> [UInt8]? {
        let length = UInt32(clamping: token.utf8.count)
        var text = (0..<Self.lengthBytes).map { UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * $0)) }
        text.append(contentsOf: token.utf8)
        text.append(contentsOf: (replacement ?? "").utf8)
        return (try? AES.GCM.seal(text, using: self.key, authenticating: self.place(of: key)))?.combined
            .map { [UInt8]($0) }
    }

    /// Opens what was sealed.
    ///
    /// - Returns: the token and its replacement; `nil` for bytes of another tenant or place, or changed ones.
    package func open(_ sealed: [UInt8], at key: UInt64) -> (token: String, replacement: String?)? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed),
            let data = try? AES.GCM.open(box, using: self.key, authenticating: self.place(of: key))
        else { return nil }
        let text = [UInt8](data)
        guard text.count >= Self.lengthBytes else { return nil }
        let length = text.prefix(Self.lengthBytes).reduce(0) { $0 << 8 | Int($1) }
        let rest = text.dropFirst(Self.lengthBytes)
        guard length <= rest.count, let token = String(validating: rest.prefix(length), as: UTF8.self),
            let replacement = String(validating: rest.dropFirst(length), as: UTF8.self)
        else { return nil }
        return (token, replacement.isEmpty ? nil : replacement)
    }

    private func place(of key: UInt64) -> [UInt8] {
        Array("fcm-gateway retired token 1 \(self.tenant) \(key)".utf8)
    }
}
