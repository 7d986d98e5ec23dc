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

    /// Seals a place in the tenant's feed, since transactions count what others do.
    package func seal(_ cursor: RetiredTokenCursor) throws(GatewayError) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in [cursor.transaction, cursor.position] { bytes.append(bigEndian: UInt64(bitPattern: number)) }
        return try self.key.seal(bytes + Array(cursor.epoch.utf8), for: self.cursorPurpose)
    }

    /// The place that was sealed; `nil` for bytes that are none of the tenant's cursors.
    package func open(cursor sealed: [UInt8]) -> RetiredTokenCursor? {
        guard let bytes = self.key.open(sealed, for: self.cursorPurpose), bytes.count >= 16,
            let epoch = String(validating: bytes[16...], as: UTF8.self)
        else { return nil }
        let numbers = [0, 8]
            .map { start in Int64(bitPattern: bytes[start..<(start + 8)].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }) }
        return RetiredTokenCursor(epoch: epoch, transaction: numbers[0], position: numbers[1])
    }

    private var cursorPurpose: String { "fcm-gateway retired token cursor 1 \(self.tenant.text)" }

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
    /// Changes the state of those tokens that are pending.
    case move(RetiredTokenOwner, [UInt64], to: RetiredToken.State)
    /// Notes a further report of a token that is there.
    case touch(RetiredTokenOwner, UInt64, at: Timestamp)
    case remove(RetiredTokenOwner, UInt64)
    case save(RetiredTokenOwner, SpikeDetector)
    /// Adds to what this replica has told the others' spike detectors of.
    case count(RetiredTokenOwner, accepted: Int, unregistered: Int)

    /// About how many bytes it holds in memory; a change without texts holds next to none.
    var byteCount: Int {
        switch self {
        case .put(_, _, let token, _, _): token.text.utf8.count + (token.replacement?.utf8.count ?? 0)
        case .move, .touch, .remove, .save, .count: 0
        }
    }

    package var owner: RetiredTokenOwner {
        switch self {
        case .put(let owner, _, _, _, _), .move(let owner, _, _), .touch(let owner, _, _), .remove(let owner, _),
            .save(let owner, _), .count(let owner, _, _):
            owner
        }
    }

    /// The tokens that it changes.
    package var keys: [UInt64] {
        switch self {
        case .put(_, let key, _, _, _), .touch(_, let key, _), .remove(_, let key): [key]
        case .move(_, let keys, _): keys
        case .save, .count: []
        }
    }
}

/// A place in a tenant's feed, in one life of the store.
package struct RetiredTokenCursor: Sendable, Hashable {
    /// Tells the store from one that it was restored from or copied to.
    package var epoch: String
    /// The number of the transaction that fed what stands there; 0 where the store has no such numbers.
    package var transaction: Int64
    /// Its place among what that transaction fed, or in all of the feed where there are no numbers.
    package var position: Int64

    package init(epoch: String, transaction: Int64, position: Int64) {
        (self.epoch, self.transaction, self.position) = (epoch, transaction, position)
    }
}

/// Some tokens of a tenant's feed, in the order in which they came to be fed.
package struct RetiredTokenFeed: Sendable, Hashable {
    package var tokens: [RetiredToken]
    /// Where it ends; what is fed later comes after it.
    package var cursor: RetiredTokenCursor
    package var hasMore: Bool
    /// How many are left out because what is stored of them does not open.
    package var unreadable: Int

    package init(tokens: [RetiredToken], cursor: RetiredTokenCursor, hasMore: Bool, unreadable: Int = 0) {
        (self.tokens, self.cursor) = (tokens, cursor)
        (self.hasMore, self.unreadable) = (hasMore, unreadable)
    }
}

/// All retired tokens without their texts, in the order of their last reports, and the tenants' spike detectors.
package struct RetiredTokenContents: Sendable {
    package var entries: [RetiredTokenEntry]
    package var detectors: [TenantID: SpikeDetector]
    /// What the other replicas have counted.
    package var counts: [RetiredTokenCount]
    /// Changes after it are not in here.
    package var bookmark: RetiredTokenBookmark

    package init(
        entries: [RetiredTokenEntry],
        detectors: [TenantID: SpikeDetector],
        counts: [RetiredTokenCount],
        bookmark: RetiredTokenBookmark
    ) {
        (self.entries, self.detectors) = (entries, detectors)
        (self.counts, self.bookmark) = (counts, bookmark)
    }
}

/// Stores retired tokens, their texts sealed by their owners, and each tenant's spike detector.
///
/// Its calls throw `storeUnavailable`; one that writes has changed nothing then.
package protocol RetiredTokenStore: Sendable {
    /// Everything in one snapshot. A store that was restored or copied gets another epoch before.
    func load() async throws(GatewayError) -> RetiredTokenContents

    /// Makes changes in their order, in one transaction; those of a tenant that is gone are left out.
    ///
    /// A token that is put in a state that is fed, or moved to one, gets a place after all others of its tenant's feed
    /// that a reader can have seen. A detector is saved unless one is stored that has been through more.
    func apply(_ changes: [RetiredTokenChange]) async throws(GatewayError)

    /// What is fed after a cursor, or from the beginning, as far as nothing can come before it any more. Throws `invalid`
    /// where the cursor is of another epoch.
    func feed(
        of owner: RetiredTokenOwner,
        after cursor: RetiredTokenCursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed

    /// What replicas changed since a bookmark, this one included, or the next page of it; `nil` where the bookmark is of
    /// another epoch.
    func changes(since bookmark: RetiredTokenBookmark) async throws(GatewayError) -> RetiredTokenNews?

    /// Drops tokens that were last reported before a moment, and then the oldest of the tenant that has most, until no
    /// more than so many are left; returns what was dropped.
    func trim(reportedBefore cutoff: Timestamp, keeping maxEntries: Int) async throws(GatewayError)
        -> [RetiredTokenEntry]
}
