/// Finds out who is calling, from memory alone.
package struct Authenticator: Sendable {
    /// The answer to a presented key.
    package enum Outcome: Sendable {
        case authenticated(Principal)
        case refused(Refusal)
    }

    /// Why a key is refused.
    ///
    /// Callers are told nothing of this; metrics are.
    package enum Refusal: String, Sendable, CaseIterable {
        /// No key was presented.
        case missing
        /// The text is no key, or its checksum is wrong.
        case malformed
        /// No such key, or another secret under its id.
        case unknown
        /// The key was revoked or has expired.
        case dead
        /// The key's tenant is disabled.
        case disabled
        /// The connection's client has no certificate with a name that the key's tenant asks for.
        case certificate
    }

    private let directory: Directory
    private let pepper: KeyPepper

    /// Authenticates against a directory's current picture.
    package init(directory: Directory, pepper: KeyPepper) {
        self.directory = directory
        self.pepper = pepper
    }

    /// Judges the bytes of a key's text, and who presents it.
    ///
    /// - Parameters:
    ///   - bytes: the key's text, if there is one.
    ///   - clientNames: the names in the verified certificate of the connection's client; none without a certificate.
    ///   - now: the time, for keys that expire.
    /// - Returns: who calls, or why the key is refused.
    package func authenticate(key bytes: ArraySlice<UInt8>?, clientNames: [String], now: Timestamp) -> Outcome {
        guard let bytes else { return .refused(.missing) }
        guard let id = APIKey.id(in: bytes) else { return .refused(.malformed) }
        let snapshot = self.directory.snapshot
        guard let principal = snapshot.principals[id], self.pepper.matches(bytes, digest: principal.key.digest) else {
            return .refused(.unknown)
        }
        guard principal.key.isAlive(at: now) else { return .refused(.dead) }
        guard !principal.profile.tenant.isDisabled else { return .refused(.disabled) }
        guard principal.profile.admits(clientNames: clientNames) else { return .refused(.certificate) }
        return .authenticated(principal)
    }
}
