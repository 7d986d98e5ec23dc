import FCMModel

/// What the gateway knows of one device group, and what it has undertaken to do with it.
///
/// FCM tells nobody who the members of a group are. So the gateway notes each token before it asks FCM to add or remove
/// it, and whether FCM agreed afterwards: whatever happens in between, every token that may be a member is written down.
package struct DeviceGroup: Sendable, Hashable {
    /// How far a token has come.
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
        /// The token.
        package var token: String
        /// How far it has come.
        package var standing: Standing

        /// A member.
        package init(_ token: String, _ standing: Standing) {
            self.token = token
            self.standing = standing
        }
    }

    /// Whose group it is.
    package let tenant: TenantID
    /// When that tenant was made: one that is made anew under the same id has groups of its own.
    package let tenantCreatedAt: Timestamp
    /// The tenant's name for it.
    package let name: String
    /// FCM's name for it.
    package let upstreamName: String
    /// A key of it; `nil` while none is known.
    package var key: String?
    /// Every token that may be a member, in the order of their coming.
    package var members: [Member]
    /// Whether there are no members but these: false for a group that somebody else made.
    package var isComplete: Bool
    /// How often it was stored; 0 for a group that is not.
    package var version: Int
    /// When it was stored.
    package var updatedAt: Timestamp

    /// A group.
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

    /// The tokens that are meant to be members.
    package var tokens: [String] {
        self.members.filter { $0.standing != .removing }.map(\.token)
    }

    /// Whether FCM's group has exactly the tokens that are meant to be members, as far as FCM can be believed.
    package var isExact: Bool {
        self.isComplete && self.key != nil && self.members.allSatisfy { $0.standing == .member }
    }

    /// Whether the gateway has written it down.
    var isStored: Bool { self.version > 0 }

    /// Whether there is nothing in it to be kept: neither a key nor a token.
    var isEmpty: Bool { self.key == nil && self.members.isEmpty }

    /// Notes that FCM is about to be asked for a change.
    mutating func begin(_ operation: GroupOperation, _ tokens: [String]) {
        self.mark(tokens, operation == .remove ? .removing : .adding)
    }

    /// Notes that FCM made a change, and gave out a key.
    mutating func finish(_ operation: GroupOperation, _ tokens: [String], key: String) {
        self.key = key
        switch operation {
        case .create, .add: self.mark(tokens, .member)
        case .remove: self.drop(tokens)
        }
    }

    /// Notes that tokens are no members.
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
