import FCMModel

/// Brings one device group to the members that its tenant wants, one request to FCM at a time.
///
/// Pure: the caller stores ``group`` whenever it has changed, makes the requests, and reports FCM's answers. A new
/// reconciliation of a stored group continues one that was interrupted.
struct GroupReconciliation: Sendable {
    /// The next step.
    enum Step: Sendable, Hashable {
        /// A request to FCM; the group must be stored first.
        case call(GroupRequest)
        case settled
        case absent
        case refused(Refusal)
    }

    /// Far more requests than any change takes: beyond them another party must be changing the group.
    private static let maxCalls = 24

    private(set) var group: DeviceGroup
    /// True if FCM's last answer was that it has no such group.
    private(set) var isAbsent = false
    private let wanted: [String]
    private let mustExist: Bool
    private let mayRemain: Bool
    private let verifies: Bool
    private var calls = 0
    /// True if FCM has confirmed the group since the last removal.
    private var isConfirmed = false
    private var hasRenewedKey = false
    private var mayEmpty = false
    private var refusal: Refusal?
    /// The group before the request that is under way.
    private var before: DeviceGroup

    /// - Parameters:
    ///   - group: as it is known.
    ///   - wanted: the wanted tokens, at most 20; none to delete the group.
    ///   - removing: tokens that FCM is asked to remove even if the gateway does not know them.
    ///   - mustExist: true if a group that FCM does not have is not created.
    ///   - mayRemain: true if a group without wanted tokens may remain, for members that the gateway does not know.
    ///   - verifies: true to ask FCM at the end for the group, which FCM may have forgotten.
    init(
        _ group: DeviceGroup,
        toward wanted: [String],
        removing: [String] = [],
        mustExist: Bool = false,
        mayRemain: Bool = false,
        verifies: Bool = false
    ) {
        self.group = group
        self.before = group
        self.wanted = wanted
        self.mustExist = mustExist
        self.mayRemain = mayRemain
        self.verifies = verifies
        if !group.isComplete { self.group.begin(.remove, removing.filter { !wanted.containsToken($0) }) }
    }

    /// Decides the next step, and notes the intent in the group.
    mutating func next() -> Step {
        if let refusal = self.refusal { return .refused(refusal) }
        guard let request = self.nextRequest() else { return self.ending }
        self.calls += 1
        guard self.calls <= Self.maxCalls else { return .refused(.groupConflict) }
        self.before = self.group
        if case .change(let change) = request {
            if change.operation == .create { self.group.isComplete = true }
            self.group.begin(change.operation, change.tokens)
        }
        return .call(request)
    }

    mutating func stored(version: Int, at time: Timestamp) {
        self.group.version = version
        self.group.updatedAt = time
        self.before.version = version
        self.before.updatedAt = time
    }

    private var ending: Step {
        if self.isAbsent { return .absent }
        guard self.wanted.isEmpty, !self.mayRemain else { return .settled }
        return .refused(Refusal(.conflict, "FCM's group has members that the gateway does not know and can't remove"))
    }

    // MARK: Deciding

    private func nextRequest() -> GroupRequest? {
        if self.isAbsent {
            guard !self.wanted.isEmpty, !self.mustExist else { return nil }
            return .change(GroupChange(.create, name: self.group.upstreamName, tokens: self.wanted))
        }
        guard let key = self.group.key else { return .lookUp(name: self.group.upstreamName) }
        guard let (operation, tokens) = self.nextChange() else {
            // FCM deletes a group with its last member; only a look-up shows it.
            let mustLook = (self.wanted.isEmpty || self.verifies) && !self.isConfirmed
            return mustLook ? .lookUp(name: self.group.upstreamName) : nil
        }
        return .change(GroupChange(operation, name: self.group.upstreamName, key: key, tokens: tokens))
    }

    /// Removes before it adds, so that a group never has too many members. Keeps one old member until a new one is
    /// added, so that FCM does not delete the group.
    private func nextChange() -> (GroupChange.Operation, [String])? {
        let surplus = self.group.members.filter { !self.wanted.containsToken($0.token) }
        let kept = self.group.members.filter { self.wanted.containsToken($0.token) }
        let certain = kept.filter { $0.standing == .member }.map(\.token)
        // Possible members first: they take no room.
        let keptTokens = kept.map(\.token)
        let open = keptTokens + self.wanted.filter { !keptTokens.containsToken($0) }
        let missing = open.filter { !certain.containsToken($0) }
        if !surplus.isEmpty {
            if self.wanted.isEmpty || !certain.isEmpty || self.mayEmpty {
                return (.remove, Self.batch(surplus.map(\.token)))
            }
            let anchor = surplus.first { $0.standing == .member } ?? surplus[0]
            let others = surplus.map(\.token).filter { ![anchor.token].containsToken($0) }
            if !others.isEmpty { return (.remove, Self.batch(others)) }
            return (.add, Array(missing.prefix(GroupChange.maxTokens - 1)))
        }
        return missing.isEmpty ? nil : (.add, Self.batch(missing))
    }

    private static func batch(_ tokens: [String]) -> [String] {
        Array(tokens.prefix(GroupChange.maxTokens))
    }

    // MARK: Learning

    mutating func received(_ result: GroupResult, of request: GroupRequest) {
        switch (request, result.answer) {
        case (.lookUp, .success(let key)):
            self.group.key = key
            self.isConfirmed = true
            if self.wanted.isEmpty, self.group.members.isEmpty { self.group.isComplete = false }
        case (.lookUp, .failure(let failure)):
            if failure.kind == .groupNotFound {
                self.isAbsent = true
                self.forgetMembers()
            } else {
                self.refusal = Refusal(failure)
            }
        case (.change(let change), .success(let key)):
            self.group.finish(change.operation, change.tokens, key: key)
            self.isAbsent = false
            self.isConfirmed = change.operation != .remove
        case (.change(let change), .failure(let failure)):
            self.failed(change, failure)
        }
    }

    private mutating func failed(_ change: GroupChange, _ failure: GroupFailure) {
        switch (change.operation, failure.kind) {
        case (.create, .groupExists):
            // It was created elsewhere since the look-up.
            self.isAbsent = false
            self.forgetMembers()
        case (.add, .groupNotFound), (.remove, .groupNotFound):
            // Gone, or another group has the name by now: a look-up shows which.
            self.forgetMembers()
        case (.remove, .noValidTokens):
            self.group.drop(change.tokens)
            self.isConfirmed = false
        case (.add, .noValidTokens):
            self.group = self.before
            let uncertain = self.group.members.filter { $0.standing != .member }.map(\.token)
            self.group.drop(uncertain.filter(change.tokens.containsToken))
            self.refusal = Refusal(failure)
        case (.add, .groupKeyInvalid), (.add, .upstreamInternal), (.remove, .groupKeyInvalid),
            (.remove, .upstreamInternal):
            // FCM fails so over keys that are damaged or foreign.
            guard !self.hasRenewedKey else { return self.give(up: failure) }
            self.hasRenewedKey = true
            self.group.key = nil
        case (.add, .invalidField):
            // The last of the old members may take up the room that the new ones need.
            guard !self.mayEmpty, self.before.members.contains(where: { !self.wanted.containsToken($0.token) }) else {
                return self.give(up: failure)
            }
            self.mayEmpty = true
        default:
            self.give(up: failure)
        }
    }

    /// Ends with a failure; takes the intent back if FCM surely did nothing.
    private mutating func give(up failure: GroupFailure) {
        if failure.isDefinite { self.group = self.before }
        self.refusal = Refusal(failure)
    }

    private mutating func forgetMembers() {
        self.group.key = nil
        self.group.members = []
        self.group.isComplete = false
        self.isConfirmed = false
    }
}
