import FCMModel
import Synchronization

/// The keys by which groups are known, so that a send to a device that is no group asks no store.
///
/// Hashes of this process; one too many costs a look into the store. A key that the store forgets stays.
final class KnownGroupKeys: Sendable {
    private let hashes = Mutex<[TenantID: Set<Int>]>([:])
    private let count = Atomic(0)

    /// Notes a key.
    func insert(_ key: String, of tenant: TenantID) {
        let isNew = self.hashes.withLock { $0[tenant, default: []].insert(key.hashValue).inserted }
        if isNew { self.count.wrappingAdd(1, ordering: .relaxed) }
    }

    /// Whether no group is known by any key.
    var isEmpty: Bool { self.count.load(ordering: .relaxed) == 0 }

    /// Which of some texts may be keys of a tenant's groups, by their places.
    func places(in texts: [String], of tenant: TenantID) -> [Int] {
        self.hashes.withLock { hashes in
            guard let known = hashes[tenant] else { return [] }
            return texts.indices.filter { known.contains(texts[$0].hashValue) }
        }
    }
}

/// Device groups as limits count them: one thing under all keys, whose messages reach each of its members.
extension DeviceGroups {
    /// Reads by which keys groups are known; call it before serving.
    ///
    /// - Throws: `storeUnavailable`.
    package func load() async throws(GatewayError) {
        for (tenant, key) in try await self.store.keys() { self.knownKeys.insert(key, of: tenant) }
    }

    /// Whether some recipients of a send are, or may be, device groups.
    func mayBeAddressed(by command: SendCommand) -> Bool {
        if command.groupName != nil { return true }
        guard !self.knownKeys.isEmpty else { return false }
        return !self.knownKeys.places(in: command.target.devices, of: command.principal.profile.id).isEmpty
    }

    /// What sends to groups are charged to, by the recipients' places: first the group's own bucket, then those of the
    /// members that are known.
    ///
    /// A key that the gateway does not know, or can't look up now, is a device by itself.
    func limitKeys(of command: SendCommand) async -> [Int: [LimitKey]] {
        let profile = command.principal.profile
        if let name = command.groupName {
            let group = try? await self.store.group(named: name, of: profile.id)
            return [0: Self.limitKeys(of: name, group, profile)]
        }
        let devices = command.target.devices
        var keys: [Int: [LimitKey]] = [:]
        for place in self.knownKeys.places(in: devices, of: profile.id) {
            guard let group = try? await self.store.group(withKey: devices[place], of: profile.id) else { continue }
            keys[place] = Self.limitKeys(of: group.name, group, profile)
        }
        return keys
    }

    /// How many members are known of the group that a key belongs to; `nil` where the gateway has not seen the key.
    func memberCount(ofKey key: String, of profile: TenantProfile) async -> Int? {
        (try? await self.store.group(withKey: key, of: profile.id))?.tokens.count
    }

    private static func limitKeys(of name: String, _ group: DeviceGroup?, _ profile: TenantProfile) -> [LimitKey] {
        // No token has a line feed, so a group is never taken for a device.
        let names = ["device group\n\(name)"] + (group?.tokens ?? [])
        return names.map { LimitKey(profile.pseudonymizer.pseudonym(of: $0)) }
    }
}

extension Target {
    /// The devices or keys of groups that are addressed.
    fileprivate var devices: [String] {
        switch self {
        case .token(let text), .notificationKey(let text): [text]
        case .tokens(let texts): texts
        case .installation, .installations, .topic, .condition: []
        }
    }
}
