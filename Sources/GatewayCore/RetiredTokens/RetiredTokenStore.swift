import Crypto

/// A token or installation id that FCM called unregistered or replaced.
package struct RetiredToken: Sendable, Hashable {
    /// One change of a tenant's list. Tokens are named by the first 64 bits of their pseudonyms.
    package enum Change: Sendable, Hashable {
        /// FCM called a token dead or replaced at its `since`. The number is some bits of the replacement's pseudonym.
        case report(RetiredToken.Owner, UInt64, RetiredToken, replacement: UInt16)
        /// FCM accepted a token, or it was taken off the list.
        case remove(RetiredToken.Owner, UInt64)
        /// FCM judged recipients.
        case count(RetiredToken.Owner, RetiredTokenCounts.Tally)

        /// About how many bytes it holds in memory. A change without texts holds next to none.
        var byteCount: Int {
            switch self {
            case .report(_, _, let token, _): token.text.utf8.count + (token.replacement?.utf8.count ?? 0)
            case .remove, .count: 0
            }
        }

        /// A report of a dead token from before a moment becomes suspected.
        ///
        /// The store counts recipients at the time of the writing, so it can't judge an older report.
        func suspected(ifReportedBefore moment: Timestamp) -> RetiredToken.Change {
            guard case .report(let owner, let key, var token, let replacement) = self, token.state == .unregistered,
                token.since < moment
            else { return self }
            token.state = .suspected
            return .report(owner, key, token, replacement: replacement)
        }

        package var owner: RetiredToken.Owner {
            switch self {
            case .report(let owner, _, _, _), .remove(let owner, _), .count(let owner, _): owner
            }
        }

        /// The token that changes, 0 for a count.
        package var key: UInt64 {
            switch self {
            case .report(_, let key, _, _), .remove(_, let key): key
            case .count: 0
            }
        }
    }

    /// A retired token without its texts, or one that left the list.
    package struct Entry: Sendable, Hashable {
        package var tenant: TenantID
        /// The first 64 bits of the token's pseudonym.
        package var key: UInt64
        /// `nil` if it left the list.
        package var state: RetiredToken.State?
        /// When FCM last reported it.
        package var reportedAt: Timestamp
        /// Some bits of the replacement's pseudonym, by which another replacement is noticed; 0 without one.
        package var replacement: UInt16

        package init(
            tenant: TenantID,
            key: UInt64,
            state: RetiredToken.State?,
            reportedAt: Timestamp,
            replacement: UInt16
        ) {
            (self.tenant, self.key, self.state) = (tenant, key, state)
            (self.reportedAt, self.replacement) = (reportedAt, replacement)
        }
    }

    /// A registration token or an installation id; the raw value is the API's word for it.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case token
        case installation = "fid"
    }

    /// Its standing on the list. The raw value is the feed's `reason`.
    package enum State: String, Sendable, Hashable, CaseIterable {
        /// FCM called it unregistered. It is refused for a day after each report, and fed once it is due
        /// (``RetiredTokenCounts``). Next: `suspected` if it is not fed yet, `replaced`, gone.
        case unregistered
        /// FCM called it unregistered in a spike. It is neither refused nor fed. Next: `unregistered`, `replaced`,
        /// gone.
        case suspected
        /// FCM knows the device by another token. It is not refused, and it is fed. Next: `unregistered`, `replaced`,
        /// gone.
        case replaced
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

extension RetiredToken {
    /// A tenant from its creation to its deletion, with the key that seals its tokens for the store.
    ///
    /// Another tenant of the same name was created at another time and has another key. With the tenant's salt
    /// destroyed, no store or backup tells a token.
    package struct Owner: Sendable, Hashable {
        package let tenant: TenantID
        package let createdAt: Timestamp
        private let key: SymmetricKey

        package init(tenant: TenantID, createdAt: Timestamp, _ pseudonymizer: Pseudonymizer) {
            (self.tenant, self.createdAt, self.key) = (tenant, createdAt, pseudonymizer.sealingKey)
        }

        package init(_ profile: TenantProfile) {
            self.init(tenant: profile.id, createdAt: profile.tenant.createdAt, profile.pseudonymizer)
        }

        package static func == (lhs: Owner, rhs: Owner) -> Bool {
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

        /// Seals a place in the tenant's feed, since positions count what is fed to all tenants.
        package func seal(_ cursor: RetiredTokenFeed.Cursor) throws(GatewayError) -> [UInt8] {
            var bytes: [UInt8] = []
            bytes.append(bigEndian: UInt64(bitPattern: cursor.position))
            return try self.key.seal(bytes + Array(cursor.epoch.utf8), for: self.cursorPurpose)
        }

        /// The place that was sealed; `nil` for bytes that are none of the tenant's cursors.
        package func open(cursor sealed: [UInt8]) -> RetiredTokenFeed.Cursor? {
            guard let bytes = self.key.open(sealed, for: self.cursorPurpose), bytes.count >= 8,
                let epoch = String(validating: bytes[8...], as: UTF8.self)
            else { return nil }
            let position = bytes[..<8].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            return RetiredTokenFeed.Cursor(epoch: epoch, position: Int64(bitPattern: position))
        }

        private var cursorPurpose: String { "fcm-gateway retired token cursor 1 \(self.tenant.text)" }

        private func place(of key: UInt64) -> String {
            "fcm-gateway retired token 1 \(self.tenant.text) \(key)"
        }
    }
}

/// Some tokens of a tenant's feed, in the order in which they came to be fed.
package struct RetiredTokenFeed: Sendable, Hashable {
    /// The changes that all replicas made since the last reading, and the spikes.
    package struct News: Sendable, Hashable {
        /// The tenants for which the last hour is a spike.
        package var spiking: Set<TenantID>
        /// The tokens that came to the list, changed on it or left it, as they are now.
        package var changed: [RetiredToken.Entry]
        /// When they were read, by the database's time.
        package var readAt: Timestamp

        package init(spiking: Set<TenantID>, changed: [RetiredToken.Entry], readAt: Timestamp) {
            self.spiking = spiking
            self.changed = changed
            self.readAt = readAt
        }
    }

    /// A place in a tenant's feed, in one life of the store.
    package struct Cursor: Sendable, Hashable {
        /// Tells the store from one that it was restored from or copied to.
        package var epoch: String
        /// Rises with each token that is fed to any tenant.
        package var position: Int64

        package init(epoch: String, position: Int64) {
            self.epoch = epoch
            self.position = position
        }
    }

    package var tokens: [RetiredToken]
    /// The end of the page. Tokens fed later have a higher position.
    package var cursor: Cursor
    package var hasMore: Bool
    /// The number of tokens left out because their stored texts do not open.
    package var unreadable: Int

    package init(tokens: [RetiredToken], cursor: Cursor, hasMore: Bool, unreadable: Int = 0) {
        (self.tokens, self.cursor) = (tokens, cursor)
        (self.hasMore, self.unreadable) = (hasMore, unreadable)
    }
}

/// Stores retired tokens, their texts sealed by their owners, and each tenant's ``RetiredTokenCounts``.
///
/// The store decides for all replicas how a reported token stands. Its calls throw
/// `storeUnavailable`; one that writes has changed nothing then.
package protocol RetiredTokenStore: Sendable {
    /// Reads all tokens of the list in one snapshot, and when that was by the database's time. A store that was restored or copied
    /// gets another epoch first.
    func load() async throws(GatewayError) -> (entries: [RetiredToken.Entry], readAt: Timestamp)

    /// Makes changes in one transaction, those of one token in their order. Leaves out changes of a tenant that is
    /// gone.
    ///
    /// A report of a token that is on the list with the same news only notes the time. A report in the state `suspected`
    /// lists a token that was not on the list, and changes nothing else.
    func apply(_ changes: [RetiredToken.Change]) async throws(GatewayError)

    /// Takes a token off the list. Returns false if it was not on it.
    func remove(_ key: UInt64, of owner: RetiredToken.Owner) async throws(GatewayError) -> Bool

    /// Feeds the tokens that are due and suspects those of a spike, then reads the news since a moment.
    ///
    /// A token that is fed gets a position in its tenant's feed. It is higher than all positions that a reader can have
    /// seen.
    func settle(newsSince moment: Timestamp) async throws(GatewayError) -> RetiredTokenFeed.News

    /// Reads the tokens fed after a cursor, or from the beginning. Throws `invalid` if the cursor is of another epoch.
    func feed(
        of owner: RetiredToken.Owner,
        after cursor: RetiredTokenFeed.Cursor?,
        limit: Int
    ) async throws(GatewayError) -> RetiredTokenFeed

    /// Drops tokens that were last reported before a moment, and then the oldest of the tenants that have most, until at
    /// most so many are left. Drops old counts.
    func trim(reportedBefore cutoff: Timestamp, keeping maxEntries: Int) async throws(GatewayError)
}
