import FCMModel

/// Authenticates callers, from memory alone.
package struct Authenticator: Sendable {
    /// The caller, or the reason for a refusal.
    package enum Outcome: Sendable {
        case authenticated(Principal)
        case refused(Refusal)
    }

    /// The reason why a key is refused. It appears in metrics, and never in a response.
    package enum Refusal: String, Sendable, CaseIterable {
        case missing
        case malformed
        /// No such key, or another secret under its id.
        case unknown
        case dead
        case disabled
        /// The client's certificate has none of the names that the key's tenant requires.
        case certificate
        /// The store could not be read for too long, so the key may have been revoked.
        case stale
        /// This version can't read the row of the key's tenant, which a later release wrote.
        case unreadable
    }

    private let directory: Directory
    private let pepper: APIKey.Pepper

    package init(directory: Directory, pepper: APIKey.Pepper) {
        self.directory = directory
        self.pepper = pepper
    }

    /// Authenticates the bytes of a key, presented by a client whose verified certificate has these names.
    package func authenticate(key bytes: ArraySlice<UInt8>?, clientNames: [String], now: Timestamp) -> Outcome {
        guard let bytes else { return .refused(.missing) }
        let snapshot = self.directory.snapshot
        guard !snapshot.isExpired, let id = APIKey.unverifiedID(in: bytes), let principal = snapshot.principals[id],
            self.pepper.matches(bytes, digest: principal.key.digest)
        else { return .refused(self.refusal(of: bytes, now, snapshot)) }
        guard principal.key.isAlive(at: now) else { return .refused(.dead) }
        guard !principal.profile.tenant.isDisabled else { return .refused(.disabled) }
        guard principal.profile.admits(clientNames: clientNames) else { return .refused(.certificate) }
        return .authenticated(principal)
    }

    /// The reason why no key of a snapshot has these bytes.
    private func refusal(of bytes: ArraySlice<UInt8>, _ now: Timestamp, _ snapshot: DirectorySnapshot) -> Refusal {
        guard let id = APIKey.id(in: bytes) else { return .malformed }
        guard !snapshot.isExpired else { return .stale }
        let unserved = snapshot.unservedKeys[id]
        let isKnown = unserved.map { $0.isAlive(at: now) && self.pepper.matches(bytes, digest: $0.digest) } ?? false
        return isKnown ? .unreadable : .unknown
    }
}

/// An authenticated caller: a tenant and one of its keys.
///
/// Made once for each key of a snapshot of the directory.
package final class Principal: Sendable {
    package let profile: TenantProfile
    package let key: APIKey.Record
    /// The caller's name in the audit.
    package let auditName: String
    /// The key's scopes, one bit each. Every request checks them, and a set would hash.
    private let scopes: UInt8

    package convenience init(profile: TenantProfile, key: APIKey.Record) {
        self.init(profile: profile, key: key, auditName: "key:\(key.id)")
    }

    private init(profile: TenantProfile, key: APIKey.Record, auditName: String) {
        (self.profile, self.key, self.auditName) = (profile, key, auditName)
        self.scopes = key.scopes.reduce(0) { $0 | $1.bit }
    }

    /// An operator in the place of a tenant, with all scopes.
    package convenience init(_ operator: Operator, for profile: TenantProfile, at now: Timestamp) {
        let key = APIKey.Record(
            id: "console",
            tenant: profile.id,
            name: "",
            digest: [],
            scopes: Set(Scope.allCases),
            topicPrefixes: [],
            createdAt: now
        )
        self.init(profile: profile, key: key, auditName: `operator`.auditName)
    }

    package func has(_ scope: Scope) -> Bool {
        self.scopes & scope.bit != 0
    }
}

extension Scope {
    fileprivate var bit: UInt8 {
        switch self {
        case .sendMessages: 1
        case .manageDeviceGroups: 1 << 1
        case .manageTopics: 1 << 2
        case .readAudit: 1 << 3
        case .readTokens: 1 << 4
        case .manageTokens: 1 << 5
        case .manageBatches: 1 << 6
        }
    }
}

/// A caller, its request, and its deadline.
package struct Caller: Sendable {
    package var principal: Principal
    package var origin: RequestOrigin
    /// The moment at which the caller stops waiting.
    package var deadline: Uptime

    package init(principal: Principal, origin: RequestOrigin, deadline: Uptime) {
        self.principal = principal
        self.origin = origin
        self.deadline = deadline
    }

    package var profile: TenantProfile { self.principal.profile }
}

/// The part of a request that audit records name.
package struct RequestOrigin: Sendable {
    package var method: String
    package var requestID: String
    package var trace: RequestTrace?
    /// The operator of a request to the admin listener.
    package var `operator`: Operator?

    package init(method: String, requestID: String, trace: RequestTrace? = nil, operator: Operator? = nil) {
        (self.method, self.requestID, self.trace, self.operator) = (method, requestID, trace, `operator`)
    }

    package var traceID: String? { self.trace?.traceID }
}

/// A name in a client's certificate: a DNS name or a URI of its subject alternative names (RFC 5280, 4.2.1.6).
///
/// The two kinds can't be confused: every URI has a colon, and no DNS name has one.
package struct ClientName: Sendable, Hashable {
    package static let maxBytes = 512

    /// A DNS name in lower case, a URI as it was written.
    package let text: String

    /// Reads a name as an operator writes it: a whole DNS name without a wildcard or a final full stop, or a URI with
    /// its scheme. Returns `nil` for any other text.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.maxBytes,
            let name = text.utf8.contains(UInt8(ascii: ":")) ? Self.uri(text) : Self.dnsName(text)
        else { return nil }
        self.text = name
    }

    private static func dnsName(_ text: String) -> String? {
        guard (1...253).contains(text.utf8.count) else { return nil }
        let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isWellFormed = labels.allSatisfy { label in
            (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
                && label.allSatisfy(Self.isHostCharacter)
        }
        return isWellFormed ? text.lowercased() : nil
    }

    /// Returns a URI unchanged, or `nil` for a text that is none.
    ///
    /// Names are compared byte by byte, as SPIFFE does, so escapes and the case of letters are kept.
    private static func uri(_ text: String) -> String? {
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), colon > text.startIndex,
            text.utf8.index(after: colon) < text.endIndex, let first = text.utf8.first, first.isLetter,
            text.utf8[..<colon].allSatisfy(Self.isSchemeCharacter)
        else { return nil }
        return text
    }

    private static func isHostCharacter(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    /// RFC 3986, 3.1.
    private static func isSchemeCharacter(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || [UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ".")].contains(byte)
    }
}
