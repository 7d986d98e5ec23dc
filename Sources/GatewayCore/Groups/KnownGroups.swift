import FCMModel
import ServiceLifecycle
import Synchronization

/// A device group as sends need it.
struct KnownGroup: Sendable {
    /// A key to send by; `nil` while none is known.
    let key: String?
    /// The number of known members.
    let memberCount: Int
    /// The buckets that a message to it is charged to: the group's own, then those of its members, 20 at most.
    let limitKeys: [LimitKey]

    init(_ group: DeviceGroup, of profile: TenantProfile) {
        let tokens = group.tokens
        (self.key, self.memberCount) = (group.key, tokens.count)
        let members = tokens.prefix(GroupChange.maxTokens).map { LimitKey(profile.pseudonymizer.pseudonym(of: $0)) }
        self.limitKeys = [Self.limitKey(of: group.name, profile)] + members
    }

    /// The own bucket of a group, which need not exist.
    static func limitKey(of name: String, _ profile: TenantProfile) -> LimitKey {
        // No token has a line feed, so a group is never taken for a device.
        LimitKey(profile.pseudonymizer.pseudonym(of: "device group\n\(name)"))
    }
}

/// Device groups as limits count them: one thing under all keys, whose messages reach each of its members.
///
/// A send reads its groups from the store by one query, unless they were read within the last two seconds. While the
/// store fails, groups that were read within the last hour are charged as they were then, and others are refused: to
/// count a group as a device would open its members' limits. Times are monotonic.
package final class KnownGroups: Service {
    /// A dictionary of at most so many entries: when it is full, the half goes that was not written for the longest
    /// time.
    private struct RecentEntries<Key: Hashable, Value> {
        private let half: Int
        private var young: [Key: Value] = [:]
        private var old: [Key: Value] = [:]

        init(capacity: Int) {
            self.half = capacity / 2
        }

        subscript(key: Key) -> Value? {
            get { self.young[key] ?? self.old[key] }
            set {
                self.old[key] = nil
                self.young[key] = newValue
                if self.young.count >= self.half { (self.old, self.young) = (self.young, [:]) }
            }
        }
    }

    /// The keys by which groups are known, so that a send to a device that is no group asks no store.
    ///
    /// Hashes of this process; one too many costs a look into the store. A key that the store forgets stays.
    private final class Keys: Sendable {
        private let state = Mutex<(hashes: [TenantID: Set<Int>], bookmark: GroupKeys.Bookmark?)>(([:], nil))
        private let hasKeys = Atomic(false)

        /// The store's keys have been read up to here; `nil` before the first time.
        var bookmark: GroupKeys.Bookmark? { self.state.withLock { $0.bookmark } }

        func insert(_ key: String, of tenant: TenantID) {
            _ = self.state.withLock { $0.hashes[tenant, default: []].insert(key.hashValue) }
            self.hasKeys.store(true, ordering: .relaxed)
        }

        /// Inserts keys that were read from the store.
        func insert(_ found: GroupKeys) {
            for (tenant, key) in found.keys { self.insert(key, of: tenant) }
            self.state.withLock { $0.bookmark = found.bookmark }
        }

        var isEmpty: Bool { !self.hasKeys.load(ordering: .relaxed) }

        func places(in texts: [String], of tenant: TenantID) -> [Int] {
            self.state.withLock { state in
                guard let known = state.hashes[tenant] else { return [] }
                return texts.indices.filter { known.contains(texts[$0].hashValue) }
            }
        }
    }

    /// The most groups that one list may address, by their keys.
    static let maxGroups = 20
    /// The age up to which a group is used without another look at the store. For as long, a store that failed is not
    /// asked again for a group that is cached.
    private static let freshness = Duration.seconds(2)
    /// The age up to which a group is used while the store fails.
    private static let lifetime = Duration.seconds(3_600)
    /// The most groups, and the most keys, that are cached.
    private static let capacity = 10_000
    /// How often the keys of other replicas are read.
    private static let pollInterval = Duration.seconds(1)

    /// The name of a group, or one of its keys, compared by bytes.
    private struct Reference: Sendable, Hashable {
        enum Kind { case name, key }

        let tenant: TenantID
        /// A tenant that was made anew has groups of its own.
        let tenantCreatedAt: Timestamp
        let kind: Kind
        let bytes: [UInt8]

        init(_ kind: Kind, _ text: String, of tenant: TenantID, createdAt: Timestamp) {
            (self.tenant, self.tenantCreatedAt) = (tenant, createdAt)
            (self.kind, self.bytes) = (kind, Array(text.utf8))
        }

        init(_ kind: Kind, _ text: String, of profile: TenantProfile) {
            self.init(kind, text, of: profile.id, createdAt: profile.tenant.createdAt)
        }

        var text: String { String(decoding: self.bytes, as: UTF8.self) }
    }

    /// A value as the store had it, or as this replica changed it, no earlier than at an instant.
    private struct Entry<Value: Sendable>: Sendable {
        var value: Value?
        var asOf: Uptime
    }

    private struct State {
        /// Groups by their names; without a value where this replica changed the group since.
        var groups = RecentEntries<Reference, Entry<KnownGroup>>(capacity: KnownGroups.capacity)
        /// The names of groups by their keys; without a value where the store knows no group by a key.
        var names = RecentEntries<Reference, Entry<Reference>>(capacity: KnownGroups.capacity)
        var storeFailedAt: Uptime?
    }

    /// The cache's answer for a name or key.
    private enum Finding {
        case group(KnownGroup)
        /// The store knows no group by this key.
        case device
        case unknown
    }

    private let store: any GroupStore
    /// The longest that a send waits for the store.
    private let timeout: Duration
    /// The longest that a send to a group by its name waits, where the group is not cached.
    private let nameTimeout: Duration
    private let uptime: @Sendable () -> Uptime
    private let keys = Keys()
    private let state = Mutex(State())

    init(
        store: any GroupStore,
        timeout: Duration,
        nameTimeout: Duration,
        uptime: @escaping @Sendable () -> Uptime
    ) {
        (self.store, self.timeout, self.nameTimeout, self.uptime) = (store, timeout, nameTimeout, uptime)
    }

    /// Reads the keys by which groups are known; must be called before serving.
    package func load() async throws(GatewayError) {
        self.keys.insert(try await self.store.keys(since: self.keys.bookmark))
    }

    /// Reads the keys of groups that other replicas change, once a second.
    ///
    /// A send asks no store for new keys: until a key is known here, a send to it counts as one to a device. A failing
    /// store is asked again with the next poll, and is reported elsewhere.
    package func run() async throws {
        while !Task.isShuttingDownGracefully,
            (try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.pollInterval) }) != nil
        {
            try? await self.load()
        }
    }

    /// Has sends look a group up again, since this replica changed it or may have.
    func changed(_ group: DeviceGroup) {
        let now = self.uptime()
        let name = Reference(.name, group.name, of: group.tenant, createdAt: group.tenantCreatedAt)
        let key = group.key.map { Reference(.key, $0, of: group.tenant, createdAt: group.tenantCreatedAt) }
        self.state.withLock { state in
            state.groups[name] = Entry(value: nil, asOf: now)
            if let key { state.names[key] = Entry(value: name, asOf: now) }
        }
        if let key = group.key { self.keys.insert(key, of: group.tenant) }
    }

    /// Has sends to a group by its name look it up again.
    func drop(_ name: String, of profile: TenantProfile) {
        let entry = Entry<KnownGroup>(value: nil, asOf: self.uptime())
        self.state.withLock { $0.groups[Reference(.name, name, of: profile)] = entry }
    }

    // MARK: Sends

    /// True if some recipients of a send are, or may be, device groups.
    func mayBeAddressed(by command: SendCommand) -> Bool {
        if command.groupName != nil { return true }
        guard !self.keys.isEmpty else { return false }
        return !self.keys.places(in: command.target.devices, of: command.profile.id).isEmpty
    }

    /// Returns the buckets that sends to groups are charged to, by the recipients' places: first the group's own, then
    /// those of the members that are known. A key that the store does not know is a device by itself.
    ///
    /// The closure is called before the store is asked, and may refuse the send. Throws `invalid_target` for a list of
    /// too many groups, and `overloaded` where the store does not answer in time for a group that is not cached.
    func limitKeys(
        of command: SendCommand,
        beforeLookUp: () async throws(Refusal) -> Void = {}
    ) async throws(Refusal) -> [Int: [LimitKey]] {
        let places = try self.references(in: command)
        // A dry run is charged to no group; one by a group's name needs the group's key.
        guard !command.message.dryRun || command.groupName != nil else { return [:] }
        let groups = try await self.groups(Array(places.keys), for: command, beforeLookUp)
        var keys: [Int: [LimitKey]] = [:]
        for (reference, group) in groups {
            for place in places[reference] ?? [] { keys[place] = group.limitKeys }
        }
        if let name = command.groupName, keys.isEmpty { keys[0] = [KnownGroup.limitKey(of: name, command.profile)] }
        return keys
    }

    /// A group as it was looked up last; `nil` where it is not cached, or no key of it is.
    func group(named name: String, of profile: TenantProfile) -> KnownGroup? {
        guard case .group(let group) = self.cached(Reference(.name, name, of: profile), within: Self.lifetime) else {
            return nil
        }
        return group
    }

    /// Returns the number of members that are known of the one group that a send is for; `nil` where the gateway has
    /// not seen its key, or can't look it up in time.
    func memberCount(of command: SendCommand) async -> Int? {
        switch command.target {
        case .token(let key), .notificationKey(let key):
            let reference = Reference(.key, key, of: command.profile)
            if case .group(let group) = self.cached(reference, within: Self.lifetime) { return group.memberCount }
            return await self.lookUp([reference], for: command, timeout: self.timeout)?[reference]?.memberCount
        case .tokens, .installation, .installations, .topic, .condition, .deviceGroup:
            return nil
        }
    }

    /// The groups that a send may be for, with the recipients' places.
    private func references(in command: SendCommand) throws(Refusal) -> [Reference: [Int]] {
        if let name = command.groupName { return [Reference(.name, name, of: command.profile): [0]] }
        let devices = command.target.devices
        var places: [Reference: [Int]] = [:]
        for place in self.keys.places(in: devices, of: command.profile.id) {
            places[Reference(.key, devices[place], of: command.profile), default: []].append(place)
            guard places.count <= Self.maxGroups else {
                let detail = "A list may hold the keys of \(Self.maxGroups) device groups"
                throw Refusal(.invalidTarget, detail, field: "tokens", legacyName: .invalidParameters)
            }
        }
        return places
    }

    private func groups(
        _ references: [Reference],
        for command: SendCommand,
        _ beforeLookUp: () async throws(Refusal) -> Void
    ) async throws(Refusal) -> [Reference: KnownGroup] {
        var (found, missing) = self.cached(references, within: self.isStoreFailing ? Self.lifetime : Self.freshness)
        guard !missing.isEmpty else { return found }
        try await beforeLookUp()
        let (older, uncached) = self.cached(missing, within: Self.lifetime)
        let timeout = command.groupName == nil || uncached.isEmpty ? self.timeout : self.nameTimeout
        if let current = await self.lookUp(missing, for: command, timeout: timeout) {
            found.merge(current) { $1 }
        } else {
            guard uncached.isEmpty else {
                let detail = "The limits of the device group can't be read from the store"
                throw Refusal(.overloaded, detail, retryAfter: 1)
            }
            found.merge(older) { $1 }
        }
        return found
    }

    // MARK: The cache

    /// True if the store failed within the last two seconds, and has answered nothing since.
    var isStoreFailing: Bool {
        let now = self.uptime()
        return self.state.withLock { state in state.storeFailedAt.map { now - $0 < Self.freshness } ?? false }
    }

    private func noteFailure() {
        let now = self.uptime()
        self.state.withLock { $0.storeFailedAt = now }
    }

    private func cached(
        _ references: [Reference],
        within age: Duration
    ) -> (found: [Reference: KnownGroup], missing: [Reference]) {
        var (found, missing): ([Reference: KnownGroup], [Reference]) = ([:], [])
        for reference in references {
            switch self.cached(reference, within: age) {
            case .group(let group): found[reference] = group
            case .device: break
            case .unknown: missing.append(reference)
            }
        }
        return (found, missing)
    }

    /// Looks in the cache; a group by its name is unknown where no key of it is, since a send then needs the store.
    private func cached(_ reference: Reference, within age: Duration) -> Finding {
        let oldest = self.uptime() - age
        return self.state.withLock { state in
            var name = reference
            if reference.kind == .key {
                guard let entry = state.names[reference] else { return .unknown }
                guard let known = entry.value else { return entry.asOf < oldest ? .unknown : .device }
                name = known
            }
            guard let entry = state.groups[name], entry.asOf >= oldest, let group = entry.value,
                reference.kind == .key || group.key != nil
            else { return .unknown }
            return .group(group)
        }
    }

    /// Reads groups from the store, and caches them; `nil` where the store fails, or does not answer in time.
    private func lookUp(
        _ references: [Reference],
        for command: SendCommand,
        timeout: Duration
    ) async -> [Reference: KnownGroup]? {
        let profile = command.profile
        let (began, end) = (self.uptime(), Uptime.now + timeout)
        guard let groups = await self.read(references, of: profile.id, until: min(end, command.deadline)) else {
            // A caller's departure, or its own deadline, is no failure of the store.
            if !Task.isCancelled, end <= command.deadline { self.noteFailure() }
            return nil
        }
        var found: [Reference: KnownGroup] = [:]
        var names: [(Reference, Reference?)] = []
        for (reference, group) in zip(references, groups) {
            guard let group, group.tenantCreatedAt == profile.tenant.createdAt else {
                // Only a key that groups were known by: any token may be asked for.
                if !self.keys.places(in: [reference.text], of: profile.id).isEmpty { names.append((reference, nil)) }
                continue
            }
            found[reference] = KnownGroup(group, of: profile)
            names.append((reference, Reference(.name, group.name, of: profile)))
        }
        self.state.withLock { state in
            state.storeFailedAt = nil
            for (reference, name) in names {
                if let name, let group = found[reference], !Self.isNewer(state.groups[name], than: began) {
                    state.groups[name] = Entry(value: group, asOf: began)
                }
                if reference.kind == .key, !Self.isNewer(state.names[reference], than: began) {
                    state.names[reference] = Entry(value: name, asOf: began)
                }
            }
        }
        return found
    }

    private static func isNewer<Value: Sendable>(_ entry: Entry<Value>?, than instant: Uptime) -> Bool {
        entry.map { $0.asOf > instant } ?? false
    }

    /// Reads groups, for as long as a send can wait: a store that hangs must not hold up what needs nothing of it.
    ///
    /// The look-up is cancelled then, by which a store lets its caller go.
    private func read(
        _ references: [Reference],
        of tenant: TenantID,
        until end: Uptime
    ) async -> [DeviceGroup?]? {
        guard Uptime.now < end else { return nil }
        return await withTaskGroup(of: [DeviceGroup?]?.self) { group in
            group.addTask { try? await self.read(references, of: tenant) }
            group.addTask {
                try? await Task.sleep(until: end)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    private func read(_ references: [Reference], of tenant: TenantID) async throws(GatewayError) -> [DeviceGroup?] {
        if let name = references.first, name.kind == .name {
            return [try await self.store.group(named: name.text, of: tenant)]
        }
        return try await self.store.groups(withKeys: references.map(\.text), of: tenant)
    }
}

extension Target {
    fileprivate var devices: [String] {
        switch self {
        case .token(let text), .notificationKey(let text): [text]
        case .tokens(let texts): texts
        case .installation, .installations, .topic, .condition, .deviceGroup: []
        }
    }
}
