import Crypto

/// A token or installation id that FCM called unregistered or replaced.
package struct RetiredToken: Sendable, Hashable {
    /// A registration token or an installation id; the raw value is the API's word for it.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case token
        case installation = "fid"
    }

    /// How it stands on the list; of those that are fed, the raw value is the feed's `reason`.
    package enum State: String, Sendable, Hashable, CaseIterable {
        /// FCM called it unregistered within the hour: refused, not fed yet. Next: `unregistered`, `suspected`, gone.
        case pending
        /// FCM called it unregistered, and no spike followed: refused for a day after each report, and fed. Next: gone.
        case unregistered
        /// FCM called it unregistered amid a spike: neither refused nor fed. Next: `pending`, `replaced`, gone.
        case suspected
        /// FCM knows the device by another token: not refused, and fed. Next: `pending`, `suspected`, `replaced`.
        case replaced

        package var isFed: Bool {
            switch self {
            case .unregistered, .replaced: true
            case .pending, .suspected: false
            }
        }
    }

    package var kind: Kind
    package var text: String
    package var state: State
    /// When FCM first reported it.
    package var since: Timestamp
    /// The token that FCM named instead.
    package var replacement: String?

    package init(kind: Kind, text: String, state: State, since: Timestamp, replacement: String? = nil) {
        (self.kind, self.text, self.state) = (kind, text, state)
        (self.since, self.replacement) = (since, replacement)
    }
}

/// A tenant from its creation to its deletion, with the key that seals its tokens for the store.
///
/// Another tenant of the same name was created at another time and has another key. With the tenant's salt destroyed,
/// no store or backup tells a token.
package struct RetiredTokenOwner: Sendable, Hashable {
    package let tenant: TenantID
    package let createdAt: Timestamp
    private let key: SymmetricKey

    package init(tenant: TenantID, createdAt: Timestamp, _ pseudonymizer: Pseudonymizer) {
        (self.tenant, self.createdAt, self.key) = (tenant, createdAt, pseudonymizer.sealingKey)
    }

    package init(_ profile: TenantProfile) {
        self.init(tenant: profile.id, createdAt: profile.tenant.createdAt, profile.pseudonymizer)
    }

    package static func == (lhs: RetiredTokenOwner, rhs: RetiredTokenOwner) -> Bool {
        lhs.tenant == rhs.tenant && lhs.createdAt == rhs.createdAt
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.tenant)
        hasher.combine(self.createdAt)
    }

    /// Seals a token's texts for its place, so that rows can't be exchanged.
    package func seal(_ token: RetiredToken, at key: UInt64) throws(GatewayError) -> [UInt8] {
        var writer = ByteWriter()
        writer.write(text: token.text)
        writer.write(text: token.replacement)
        return try self.key.seal(writer.bytes, for: self.place(of: key))
    }

    /// The texts that were sealed; `nil` for bytes of another tenant or place, or changed ones.
    package func open(_ sealed: [UInt8], at key: UInt64) -> (text: String, replacement: String?)? {
        guard let bytes = self.key.open(sealed, for: self.place(of: key)) else { return nil }
        var reader = ByteReader(bytes)
        guard let text = reader.text(), let replacement = reader.optionalText() else { return nil }
        return (text, replacement)
    }

    private func place(of key: UInt64) -> String {
        "fcm-gateway retired token 1 \(self.tenant.text) \(key)"
    }
}

/// A retired token without its texts.
package struct RetiredTokenEntry: Sendable, Hashable {
    package var tenant: TenantID
    /// The first 64 bits of the token's pseudonym.
    package var key: UInt64
    package var state: RetiredToken.State
    /// When FCM last reported it.
    package var reportedAt: Timestamp
    /// Some bits of the replacement's pseudonym, by which another replacement is noticed; 0 without one.
    package var replacement: UInt16

    package init(tenant: TenantID, key: UInt64, state: RetiredToken.State, reportedAt: Timestamp, replacement: UInt16) {
        (self.tenant, self.key, self.state) = (tenant, key, state)
        (self.reportedAt, self.replacement) = (reportedAt, replacement)
    }
}

/// One change of a tenant's list; tokens are named by the first 64 bits of their pseudonyms.
package enum RetiredTokenChange: Sendable, Hashable {
    /// Adds a token that was reported at its `since`, or replaces it, and then may keep the time of its first report.
    case put(RetiredTokenOwner, UInt64, RetiredToken, replacement: UInt16, keepsSince: Bool)
    /// Changes the state of tokens that are there.
    case move(RetiredTokenOwner, [UInt64], to: RetiredToken.State)
    /// Notes a further report of a token that is there.
    case touch(RetiredTokenOwner, UInt64, at: Timestamp)
    case remove(RetiredTokenOwner, UInt64)
    case save(RetiredTokenOwner, SpikeDetector)

    /// About how many bytes it holds in memory; a change without texts holds next to none.
    var byteCount: Int {
        switch self {
        case .put(_, _, let token, _, _): token.text.utf8.count + (token.replacement?.utf8.count ?? 0)
        case .move, .touch, .remove, .save: 0
        }
    }
}

/// Some tokens of a tenant's feed, in the order in which they came to be fed.
package struct RetiredTokenFeed: Sendable, Hashable {
    package var tokens: [RetiredToken]
    /// Where it ends; what is fed later comes after it.
    package var position: Int
    package var hasMore: Bool
    /// How many are left out because what is stored of them does not open.
    package var unreadable: Int

    package init(tokens: [RetiredToken], position: Int, hasMore: Bool, unreadable: Int = 0) {
        (self.tokens, self.position) = (tokens, position)
        (self.hasMore, self.unreadable) = (hasMore, unreadable)
    }
}

/// All retired tokens without their texts, in the order of their last reports, and the tenants' spike detectors.
package typealias RetiredTokenContents = (entries: [RetiredTokenEntry], detectors: [TenantID: SpikeDetector])

/// Stores retired tokens, their texts sealed by their owners, and each tenant's spike detector.
///
/// Its calls throw `storeUnavailable`; one that writes has changed nothing then.
package protocol RetiredTokenStore: Sendable {
    /// Everything in one snapshot.
    func load() async throws(GatewayError) -> RetiredTokenContents

    /// Makes changes in their order, in one transaction; those of a tenant that is gone are left out.
    ///
    /// A token that is put in a state that is fed, or moved to one, gets the position after all others of its tenant's
    /// feed.
    func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError)

    func feed(
        of owner: RetiredTokenOwner,
        after position: Int,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed

    /// Drops tokens that were last reported before a moment, and then the oldest of the tenant that has most, until no
    /// more than so many are left; returns what was dropped.
    func trim(reportedBefore cutoff: Timestamp, keeping maxEntries: Int) async throws(GatewayError)
        -> [RetiredTokenEntry]
}
