import FCMModel

/// One customer of the gateway: the services of one Firebase project.
package struct Tenant: Sendable, Hashable {
    package var id: TenantID
    package var displayName: String
    package var upstream: UpstreamKind
    /// The Firebase project id. Without one, the tenant's own id is used.
    package var projectID: String?
    /// The numeric sender id, which device groups require.
    package var senderID: String?
    /// True if FCM's names of its device groups begin with the tenant's id, because another tenant used the sender id
    /// before. The store decides this when the sender id is put.
    package var prefixesGroups: Bool
    /// True if its keys are refused.
    package var isDisabled: Bool
    /// A client's certificate must have one of these names. If empty, no certificate is required.
    package var clientNames: [ClientName]
    package var createdAt: Timestamp
    package var updatedAt: Timestamp

    package init(
        id: TenantID,
        displayName: String,
        upstream: UpstreamKind,
        projectID: String? = nil,
        senderID: String? = nil,
        prefixesGroups: Bool = false,
        isDisabled: Bool = false,
        clientNames: [ClientName] = [],
        createdAt: Timestamp,
        updatedAt: Timestamp
    ) {
        self.id = id
        self.displayName = displayName
        self.upstream = upstream
        self.projectID = projectID
        self.senderID = senderID
        self.prefixesGroups = prefixesGroups
        self.isDisabled = isDisabled
        self.clientNames = clientNames
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }
}

/// The protocols by which a tenant's messages can leave.
package enum UpstreamKind: String, Sendable, Hashable, CaseIterable {
    case legacy
    case v1
}

/// The name of a tenant in paths and keys: `[a-z0-9][a-z0-9-]{0,62}`.
package struct TenantID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package let text: String

    package init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard (1...63).contains(bytes.count), bytes.first != UInt8(ascii: "-"),
            bytes.allSatisfy({ $0.isLowerAlphanumeric || $0 == UInt8(ascii: "-") })
        else { return nil }
        self.text = String(text)
    }

    package var description: String { self.text }

    package static func < (lhs: TenantID, rhs: TenantID) -> Bool { lhs.text < rhs.text }
}

extension Tenant {
    /// An operator's settings for a tenant. The members are those of ``Tenant``.
    package struct Draft: Sendable, Hashable {
        package static let maxClientNames = 16
        /// The upstream of new tenants: Google's own servers accept no other protocol.
        package static let defaultUpstream = UpstreamKind.v1

        /// True if a project's id may have a byte: Google's have lower-case letters, digits and hyphens, older ones a
        /// domain.
        package static func isProjectByte(_ byte: UInt8) -> Bool {
            byte.isLetter || byte.isDigit || "-._:".utf8.contains(byte)
        }

        package var displayName: String
        package var upstream: UpstreamKind
        package var projectID: String?
        package var senderID: String?
        package var isDisabled: Bool
        package var clientNames: [ClientName]

        package init(
            displayName: String,
            upstream: UpstreamKind = Self.defaultUpstream,
            projectID: String? = nil,
            senderID: String? = nil,
            isDisabled: Bool = false,
            clientNames: [ClientName] = []
        ) {
            self.displayName = displayName
            self.upstream = upstream
            self.projectID = projectID
            self.senderID = senderID
            self.isDisabled = isDisabled
            self.clientNames = clientNames
        }

        package init(_ tenant: Tenant) {
            self.init(
                displayName: tenant.displayName,
                upstream: tenant.upstream,
                projectID: tenant.projectID,
                senderID: tenant.senderID,
                isDisabled: tenant.isDisabled,
                clientNames: tenant.clientNames
            )
        }
    }
}
