import FCMModel
import Synchronization

/// A tenant with what its requests need, opened and compiled.
package final class TenantProfile: Sendable {
    package let tenant: Tenant
    /// As far as they are stored and open.
    package let legacyCredential: LegacyCredential?
    package let v1Credential: ServiceAccountCredential?
    package let storedCredentials: [StoredCredential]
    /// Of its stored server key, 0 without one; tells credentials apart on the way of every send.
    package let legacyCredentialVersion: Int
    package let limits: LimitPolicies
    package let limitOverrides: LimitOverrides
    package let pseudonymizer: Pseudonymizer
    /// What its pseudonyms are salted with, and what its rows in the store are bound to; another one in each life of the
    /// tenant.
    package let salt: [UInt8]
    package let keys: [APIKeyRecord]
    /// The names of which a client's certificate must carry one; `nil` where none is asked for.
    private let clientNames: Set<String>?
    package let limitKey: LimitKey
    /// Tells the tenant from others that had its name before it was made, or will have it.
    ///
    /// Drawn from its salt, so that no clock has a part in it.
    package let uid: UInt64
    /// Its requests in flight, whichever snapshot they began under.
    package let load: TenantLoad
    /// Its list of retired tokens, once a send has asked for it.
    ///
    /// An `AtomicLazyReference` would be the thing, but its look-up is not compiled for its type and costs three times as
    /// much as this lock.
    let retiredTokens = Mutex<RetiredTokenList?>(nil)
    private let isGapLogged = Atomic(false)

    package init(
        tenant: Tenant,
        legacyCredential: LegacyCredential?,
        v1Credential: ServiceAccountCredential?,
        storedCredentials: [StoredCredential],
        limits: LimitPolicies,
        limitOverrides: LimitOverrides = LimitOverrides(),
        pseudonymizer: Pseudonymizer,
        salt: [UInt8] = [],
        keys: [APIKeyRecord] = [],
        load: TenantLoad = TenantLoad()
    ) {
        self.tenant = tenant
        self.legacyCredential = legacyCredential
        self.v1Credential = v1Credential
        self.storedCredentials = storedCredentials
        self.legacyCredentialVersion = storedCredentials.first { $0.kind == .legacy }?.version ?? 0
        self.limits = limits
        self.limitOverrides = limitOverrides
        self.pseudonymizer = pseudonymizer
        self.salt = salt
        self.keys = keys
        self.load = load
        self.clientNames = tenant.clientNames.isEmpty ? nil : Set(tenant.clientNames.map(\.text))
        self.limitKey = LimitKey(tenant: tenant.id, pseudonymizer)
        self.uid = Self.uid(of: tenant.id, pseudonymizer)
    }

    package var id: TenantID { self.tenant.id }
    /// Where its messages go by the v1 protocol: its own project, or else its service account's.
    package var v1ProjectID: String? { self.tenant.projectID ?? self.v1Credential?.projectID }

    /// FCM's name for a device group: the tenant's own, unless another tenant's groups live beside it.
    ///
    /// A tenant's id has no solidus, and no caller can name a group with the reserved prefix, so that no name of one
    /// tenant can be made to look like another's.
    package func upstreamGroupName(_ name: String) -> String {
        self.tenant.prefixesGroups ? "\(ValueRules.reservedGroupPrefix)\(self.id.text)/\(name)" : name
    }

    /// Whether a connection may use the tenant's keys whose client's verified certificate carries these names; none
    /// without a certificate.
    package func admits(clientNames names: [String]) -> Bool {
        guard let clientNames = self.clientNames else { return true }
        return names.contains { clientNames.contains($0) }
    }

    /// Whether the log is to be told what an operator has to provide: once for each snapshot.
    package func isGapNews() -> Bool {
        !self.isGapLogged.exchange(true, ordering: .relaxed)
    }

    func hasOpened(_ kind: UpstreamKind) -> Bool {
        kind == .legacy ? self.legacyCredential != nil : self.v1Credential != nil
    }

    /// What keeps FCM from being asked anything for the tenant, and what an operator has to do; `nil` where nothing does.
    package var missingCredential: String? {
        let kind = self.tenant.upstream
        let other: UpstreamKind = kind == .legacy ? .v1 : .legacy
        guard !self.hasOpened(kind) else { return nil }
        let store = "fcm-gateway credential put \(self.id.text) \(kind.rawValue)"
        if self.storedCredentials.contains(where: { $0.kind == kind }) {
            return "The tenant's \(kind.rawValue) credential does not open under the gateway's master key; "
                + "an operator must start the gateway with the right one, or store the credential again (\(store))"
        }
        if self.storedCredentials.contains(where: { $0.kind == other }) {
            return
                "The tenant's upstream is \(kind.rawValue), and its only credential is for \(other.rawValue); an operator "
                + "must change the upstream (fcm-gateway tenant set \(self.id.text) --upstream \(other.rawValue)) or add a "
                + "credential (\(store))"
        }
        return "The tenant has no \(kind.rawValue) credential for FCM; an operator must store one (\(store))"
    }

    /// Why FCM can't be asked about the tenant's device groups, and what an operator has to do; `nil` where it can.
    package var missingForGroups: String? {
        guard self.tenant.senderID == nil else { return self.missingCredential }
        return
            "The tenant has no sender id, by which FCM finds its device groups; an operator must set the number of its "
            + "Firebase project (fcm-gateway tenant set \(self.id.text) --sender-id NUMBER)"
    }

    /// The uid of a tenant that is about to be made.
    static func uid(of id: TenantID, _ pseudonymizer: Pseudonymizer) -> UInt64 {
        pseudonymizer.pseudonym(of: id.text).high
    }
}
