import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A tenant's credential for one upstream, as stored.
package struct StoredCredential: Sendable, Hashable {
    package var tenant: TenantID
    package var kind: UpstreamKind
    /// 1 for the first, and one more for every replacement.
    package var version: Int
    /// The sealed secret: for legacy the server key, for v1 the service account.
    package var envelope: Envelope
    /// The endpoint to use instead of the configured one, such as a private server or an emulator.
    package var endpoint: String?
    package var fingerprint: String
    package var createdAt: Timestamp

    package init(
        tenant: TenantID,
        kind: UpstreamKind,
        version: Int,
        envelope: Envelope,
        endpoint: String?,
        fingerprint: String,
        createdAt: Timestamp
    ) {
        self.tenant = tenant
        self.kind = kind
        self.version = version
        self.envelope = envelope
        self.endpoint = endpoint
        self.fingerprint = fingerprint
        self.createdAt = createdAt
    }

    /// Seals a credential for the tenant with this salt. Throws `invalid` if the cryptographic library fails.
    init(
        sealing credential: some TenantCredential,
        tenant: TenantID,
        salt: [UInt8],
        version: Int,
        under masterKey: MasterKey,
        at now: Timestamp
    ) throws(GatewayError) {
        self.init(
            tenant: tenant,
            kind: type(of: credential).kind,
            version: version,
            envelope: Envelope(wrappedKey: Data(), sealed: Data()),
            endpoint: credential.endpoint,
            fingerprint: credential.secret.fingerprint,
            createdAt: now
        )
        do {
            self.envelope = try Envelope(sealing: credential.secret, for: self.context(salt: salt), under: masterKey)
        } catch {
            throw GatewayError(.invalid, "The credential can't be sealed", cause: error)
        }
    }

    func open(salt: [UInt8], under masterKey: MasterKey) -> Secret? {
        try? self.envelope.open(for: self.context(salt: salt), under: masterKey)
    }

    /// The context that the envelope is sealed for: its owner and endpoint, and the salt, which a tenant that was made again
    /// does not have.
    package func context(salt: [UInt8]) -> Envelope.Context {
        Envelope.Context(
            owner: self.tenant.text,
            kind: "credential/\(self.kind.rawValue)",
            version: self.version,
            details: [self.endpoint, Hex.text(salt)]
        )
    }
}

/// A tenant's credential in clear: a server key or a service account.
package protocol TenantCredential: Sendable {
    static var kind: UpstreamKind { get }
    var secret: Secret { get }
    /// The server to call instead of the configured one.
    var endpoint: String? { get }

    /// Decrypts a stored credential. Returns `nil` if it does not open.
    init?(opening stored: StoredCredential, salt: [UInt8], under masterKey: MasterKey)
}

/// The server key that authorises calls by the legacy protocol.
package struct LegacyCredential: TenantCredential {
    package static let kind = UpstreamKind.legacy

    package let serverKey: Secret
    package let endpoint: String?
    /// The first eight bytes of the server key's SHA-256. Tells credentials apart in every send.
    package let digest: UInt64

    package var secret: Secret { self.serverKey }
    package var fingerprint: String { self.serverKey.fingerprint }

    package init(serverKey: Secret, endpoint: String?) {
        self.serverKey = serverKey
        self.endpoint = endpoint
        self.digest = serverKey.digest.reduce(0) { $0 << 8 | UInt64($1) }
    }

    package init?(opening stored: StoredCredential, salt: [UInt8], under masterKey: MasterKey) {
        guard let secret = stored.open(salt: salt, under: masterKey) else { return nil }
        self.init(serverKey: secret, endpoint: stored.endpoint)
    }
}

extension Secret {
    /// The first 16 hexadecimal digits of its SHA-256, which identify it.
    var fingerprint: String { Hex.text(self.digest) }

    fileprivate var digest: [UInt8] { Array(SHA256.hash(data: self.revealBytes()).prefix(8)) }
}

/// Proves credentials against FCM without sending anything.
package protocol CredentialProver: Sendable {
    /// Uses a tenant's credential for a dry run. Failures on the way are findings, too.
    func prove(_ kind: UpstreamKind, of profile: TenantProfile, origin: RequestOrigin) async -> CredentialReport
}

/// The result of a check of a credential.
package struct CredentialReport: Sendable, Hashable {
    /// A bounded set that reveals no secret.
    package enum Finding: String, Sendable, Hashable, CaseIterable {
        case valid
        /// The tenant has no such credential, or it does not open under the master key.
        case missing
        /// The setting `upstream.allowedTokenHosts` does not allow the account's token endpoint.
        case tokenHostRefused = "token_host_refused"
        case keyUnusable = "key_unusable"
        /// The key is not, or no longer, accepted.
        case keyRefused = "key_refused"
        case clockSkew = "clock_skew"
        /// The account may not send for the tenant's project, which is not its own or does not exist.
        case projectMismatch = "project_mismatch"
        case apiDisabled = "api_disabled"
        case permissionDenied = "permission_denied"
        /// The token endpoint does not answer, or answers with a server error.
        case tokenEndpointUnreachable = "token_endpoint_unreachable"
        /// FCM does not answer, or answers with a server error.
        case endpointUnreachable = "endpoint_unreachable"
        /// The answer is not FCM's, or of an unknown form.
        case unexpected
    }

    package let finding: Finding
    /// Its meaning and remedy, in words for an operator. Never holds a secret.
    package let detail: String
    /// The server's own code, from a bounded set.
    package let upstreamCode: String?

    package init(_ finding: Finding, _ detail: String, upstreamCode: String? = nil) {
        self.finding = finding
        self.detail = detail
        self.upstreamCode = upstreamCode
    }
}
