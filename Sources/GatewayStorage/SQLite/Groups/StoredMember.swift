import GatewayCore

/// A group's member as it is stored.
struct StoredMember: Codable {
    let token: String
    let standing: String

    /// - Returns: `nil` for text that holds anything but members.
    static func decode(_ text: String) -> [DeviceGroup.Member]? {
        guard let stored = StoredJSON.decode([StoredMember].self, from: text) else { return nil }
        let members = stored.compactMap { member in
            DeviceGroup.Standing(rawValue: member.standing).map { DeviceGroup.Member(member.token, $0) }
        }
        return members.count == stored.count ? members : nil
    }

    static func encode(_ members: [DeviceGroup.Member]) throws -> String {
        try StoredJSON.encode(members.map { StoredMember(token: $0.token, standing: $0.standing.rawValue) })
    }
}
