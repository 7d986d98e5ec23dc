package import FCMModel

/// What the gateway knows of one device group, and what it has undertaken to do with it.
///
/// FCM tells nobody who the members of a group are. So the gateway notes each token before it asks FCM to add or remove
/// it, and whether FCM agreed afterwards: whatever happens in between, every token that may be a member is written down.
package struct DeviceGroup: Sendable, Hashable {
    /// How far a token has come on its way into a group, or out of it.
    package enum Standing: String, Sendable, Hashable, CaseIterable {
        /// FCM took it. Next: `removing`, gone.
        case member
        /// FCM is asked, or was asked and did not answer, to take it. Next: `member`, `removing`, gone.
        case adding
        /// FCM is asked, or was asked and did not answer, to let it go. Next: gone, `adding`.
        case removing
    }

    /// A token that is, or may be, a member.
    package struct Member: Sendable, Hashable {
        package var token: String
        package var standing: Standing

        package init(_ token: String, _ standing: Standing) {
            self.token = token
            self.standing = standing
        }
    }

    package let tenant: TenantID
    /// When that tenant was made: one that is made anew under the same id has groups of its own.
    package let tenantCreatedAt: Timestamp
    package let name: String
    package let upstreamName: String
    /// A key of it; `nil` while none is known.
    package var key: String?
    /// Every token that may be a member, in the order of their coming.
    package var members: [Member]
    /// Whether there are no members but these: false for a group that somebody else made.
    package var isComplete: Bool
    /// How often it was stored; 0 for a group that is not.
    package var version: Int
    package var updatedAt: Timestamp

    package init(
        tenant: TenantID,
        tenantCreatedAt: Timestamp,
        name: String,
        upstreamName: String,
        key: String? = nil,
        members: [Member] = [],
        isComplete: Bool = false,
        version: Int = 0,
        updatedAt: Timestamp
    ) {
        self.tenant = tenant
        self.tenantCreatedAt = tenantCreatedAt
        self.name = name
        self.upstreamName = upstreamName
        self.key = key
        self.members = members
        self.isComplete = isComplete
        self.version = version
        self.updatedAt = updatedAt
    }

    package var tokens: [String] {
        self.members.filter { $0.standing != .removing }.map(\.token)
    }

    /// Whether FCM's group has exactly the tokens that are meant to be members, as far as FCM can be believed.
    package var isExact: Bool {
        self.isComplete && self.key != nil && self.members.allSatisfy { $0.standing == .member }
    }

    var isStored: Bool { self.version > 0 }

    var isEmpty: Bool { self.key == nil && self.members.isEmpty }

    mutating func begin(_ operation: GroupOperation, _ tokens: [String]) {
        self.mark(tokens, operation == .remove ? .removing : .adding)
    }

    mutating func finish(_ operation: GroupOperation, _ tokens: [String], key: String) {
        self.key = key
        switch operation {
        case .create, .add: self.mark(tokens, .member)
        case .remove: self.drop(tokens)
        }
    }

    mutating func drop(_ tokens: [String]) {
        self.members.removeAll { tokens.containsToken($0.token) }
    }

    private mutating func mark(_ tokens: [String], _ standing: Standing) {
        for token in tokens {
            if let index = self.members.firstIndex(where: { [token].containsToken($0.token) }) {
                self.members[index].standing = standing
            } else {
                self.members.append(Member(token, standing))
            }
        }
    }
}

/// Keys by which device groups are known.
package struct GroupKeys: Sendable {
    /// How far they have been read; with it, what came since can be asked for.
    package struct Bookmark: Sendable, Hashable {
        /// The store's, outside of which transactions have other numbers.
        package var epoch: String
        /// Transactions up to this one had ended.
        package var horizon: Int64

        package init(epoch: String, horizon: Int64) {
            (self.epoch, self.horizon) = (epoch, horizon)
        }
    }

    package var keys: [(tenant: TenantID, key: String)]
    package var bookmark: Bookmark

    package init(keys: [(tenant: TenantID, key: String)], bookmark: Bookmark) {
        (self.keys, self.bookmark) = (keys, bookmark)
    }
}

/// Keeps what the gateway knows of tenants' device groups; all of it may throw `storeUnavailable`.
///
/// A look-up of a group whose task is cancelled ends at once, whatever the store is at.
package protocol GroupStore: Sendable {
    /// `nil` where there is none.
    func group(named name: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup?

    /// The tenant's groups that have, or had since they were made, exactly these keys, at most 20: one for each key, in
    /// their order; `nil` where none is known by a key.
    ///
    /// FCM goes on taking the keys that it handed out earlier, so that callers may keep the first they got. A store may
    /// forget all but the last thousand.
    func groups(withKeys keys: [String], of tenant: TenantID) async throws(GatewayError) -> [DeviceGroup?]

    /// Every key by which ``groups(withKeys:of:)`` knows a group, or those that came since an earlier answer, with some
    /// that came before; every key also where that answer is of another epoch.
    func keys(since bookmark: GroupKeys.Bookmark?) async throws(GatewayError) -> GroupKeys

    /// Stores a group in place of the version that it was made from; gives its new version.
    ///
    /// Throws `conflict` when another version is stored meanwhile, or for version 0 any; `notFound` when the tenant is
    /// not there, or was made anew.
    func save(_ group: DeviceGroup) async throws(GatewayError) -> Int

    /// Throws `conflict` when another version, or none, is stored meanwhile.
    func remove(_ group: DeviceGroup) async throws(GatewayError)

    /// Names of a tenant's groups in the order of their bytes, at least one and at most the limit, after a name or from
    /// the beginning.
    func names(of tenant: TenantID, after name: String?, limit: Int) async throws(GatewayError) -> [String]
}

/// Carries requests to FCM's management of device groups.
package protocol GroupUpstream: Sendable {
    /// Makes a request by a tenant's own sender id and credential, and says what became of it; trouble on the way is a
    /// result too.
    func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: ContinuousClock.Instant,
        origin: RequestOrigin
    ) async -> GroupResult
}
