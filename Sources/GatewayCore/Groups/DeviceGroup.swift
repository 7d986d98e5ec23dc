package import FCMModel

/// The gateway's knowledge of one device group, with the changes that it has begun.
///
/// FCM has no call that lists a group's members. The gateway therefore stores each token before it asks FCM to add or
/// remove it, and stores FCM's answer afterwards. After a crash in between, every token that may be a member is still
/// stored.
package struct DeviceGroup: Sendable, Hashable {
    /// A token's progress into a group, or out of it.
    package enum Standing: String, Sendable, Hashable, CaseIterable {
        /// FCM added it. Next: `removing`, gone.
        case member
        /// FCM was asked to add it, and has not answered. Next: `member`, `removing`, gone.
        case adding
        /// FCM was asked to remove it, and has not answered. Next: gone, `adding`.
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
    /// The tenant's creation: a later tenant of the same id has groups of its own.
    package let tenantCreatedAt: Timestamp
    package let name: String
    package let upstreamName: String
    /// A key of it; `nil` while none is known.
    package var key: String?
    /// Every token that may be a member, in the order of addition.
    package var members: [Member]
    /// True if there are no other members; false for a group that was created elsewhere.
    package var isComplete: Bool
    /// The number of times that it was stored; 0 for a group that is not stored.
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

    /// True if FCM's group has exactly the wanted members, by FCM's last answers.
    package var isExact: Bool {
        self.isComplete && self.key != nil && self.members.allSatisfy { $0.standing == .member }
    }

    var isStored: Bool { self.version > 0 }

    var isEmpty: Bool { self.key == nil && self.members.isEmpty }

    mutating func begin(_ operation: GroupChange.Operation, _ tokens: [String]) {
        self.mark(tokens, operation == .remove ? .removing : .adding)
    }

    mutating func finish(_ operation: GroupChange.Operation, _ tokens: [String], key: String) {
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
    /// A position in the store's keys, from which later keys are read.
    package struct Bookmark: Sendable, Hashable {
        /// The store's epoch; another epoch numbers its transactions anew.
        package var epoch: String
        /// All transactions up to this one have ended.
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

/// Stores tenants' device groups; each function may throw `storeUnavailable`.
///
/// A look-up of a group ends as soon as its task is cancelled.
package protocol GroupStore: Sendable {
    /// `nil` where there is none.
    func group(named name: String, of tenant: TenantID) async throws(GatewayError) -> DeviceGroup?

    /// Returns the tenant's group for each key, at most 20, in their order; `nil` for an unknown key. A group has the
    /// keys that FCM returned since its creation.
    ///
    /// FCM continues to accept earlier keys, so that callers may use the first they got. A store may forget all but the
    /// last thousand of a group.
    func groups(withKeys keys: [String], of tenant: TenantID) async throws(GatewayError) -> [DeviceGroup?]

    /// Returns all keys that ``groups(withKeys:of:)`` knows, or those changed since the bookmark (possibly with
    /// repeats). Returns all keys if the bookmark is from another epoch.
    func keys(since bookmark: GroupKeys.Bookmark?) async throws(GatewayError) -> GroupKeys

    /// Replaces the stored version of a group; returns the new version.
    ///
    /// Throws `conflict` if another version is stored by now, or any for version 0; `notFound` if the tenant is gone,
    /// or was created anew.
    func save(_ group: DeviceGroup) async throws(GatewayError) -> Int

    /// Throws `conflict` if another version, or none, is stored by now.
    func remove(_ group: DeviceGroup) async throws(GatewayError)

    /// Names of a tenant's groups in the order of their bytes, at least one and at most the limit, after a name or from
    /// the beginning.
    func names(of tenant: TenantID, after name: String?, limit: Int) async throws(GatewayError) -> [String]
}

/// Carries requests to FCM's management of device groups.
package protocol GroupUpstream: Sendable {
    /// Makes a request by a tenant's own sender id and credential; a failure on the way is a result too.
    func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: Uptime,
        origin: RequestOrigin
    ) async -> GroupResult
}
