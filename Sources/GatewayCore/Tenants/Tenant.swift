/// One customer of the gateway: the services of one Firebase project.
package struct Tenant: Sendable, Hashable {
    /// Its name in paths.
    package var id: TenantID
    /// Its name for people.
    package var displayName: String
    /// The protocol that its messages leave by.
    package var upstream: UpstreamKind
    /// The Firebase project id; without one, the tenant's own id stands for it.
    package var projectID: String?
    /// The numeric sender id, where device groups are used.
    package var senderID: String?
    /// Whether FCM's names of its device groups begin with the tenant's own, because another tenant had the sender id
    /// before; settled by the store when the sender id is put.
    package var prefixesGroups: Bool
    /// Whether its keys are refused.
    package var isDisabled: Bool
    /// The names of which a client's certificate must carry one for the tenant's keys to be accepted; empty asks for no
    /// certificate.
    package var clientNames: [ClientName]
    /// When it was made.
    package var createdAt: Timestamp
    /// When it was last changed.
    package var updatedAt: Timestamp

    /// A tenant.
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
