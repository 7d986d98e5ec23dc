/// What an operator says of a tenant.
package struct TenantDraft: Sendable, Hashable {
    /// The most names that one tenant's clients can have.
    package static let maxClientNames = 16

    /// Its name for people.
    package var displayName: String
    /// The protocol that its messages leave by.
    package var upstream: UpstreamKind
    /// The Firebase project id.
    package var projectID: String?
    /// The numeric sender id.
    package var senderID: String?
    /// Whether its keys are refused.
    package var isDisabled: Bool
    /// The names of which a client's certificate must carry one; empty asks for none.
    package var clientNames: [ClientName]

    /// A draft.
    package init(
        displayName: String,
        upstream: UpstreamKind,
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
}
