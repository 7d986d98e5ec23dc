import Crypto
import FCMModel
import Synchronization

/// A tenant with everything that its requests need, opened and compiled.
package final class TenantProfile: Sendable {
    package let tenant: Tenant
    /// `nil` if it is not stored or does not open.
    package let legacyCredential: LegacyCredential?
    package let v1Credential: V1Credential?
    package let storedCredentials: [StoredCredential]
    package let limits: LimitPolicies
    package let limitOverrides: LimitOverrides
    package let pseudonymizer: Pseudonymizer
    /// The salt of its pseudonyms, which its rows in the store are bound to. A tenant that is deleted and made again
    /// gets another one.
    package let salt: [UInt8]
    package let keys: [APIKey.Record]
    /// A client's certificate must have one of these names. `nil` if no certificate is required.
    private let clientNames: Set<String>?
    package let limitKey: LimitKey
    /// Tells the tenant from earlier and later ones of the same name. Derived from its salt, not from a clock.
    package let uid: UInt64
    /// Its requests in flight, under any snapshot.
    package let load: LoadShedder.TenantLoad
    /// Its list of retired tokens, once a send has used it.
    ///
    /// The look-up of an `AtomicLazyReference` is not specialised and costs three times as much as this lock.
    let retiredTokens = Mutex<RetiredTokenList?>(nil)
    /// The key of its idempotency records, once a send has used it. It has been absorbed, and each record continues from a
    /// copy.
    private let idempotencyHash = Mutex<HMAC<SHA256>?>(nil)
    private let isGapLogged = Atomic(false)

    package init(
        tenant: Tenant,
        legacyCredential: LegacyCredential?,
        v1Credential: V1Credential?,
        storedCredentials: [StoredCredential],
        limits: LimitPolicies,
        limitOverrides: LimitOverrides = LimitOverrides(),
        pseudonymizer: Pseudonymizer,
        salt: [UInt8] = [],
        keys: [APIKey.Record] = [],
        load: LoadShedder.TenantLoad = LoadShedder.TenantLoad()
    ) {
        self.tenant = tenant
        self.legacyCredential = legacyCredential
        self.v1Credential = v1Credential
        self.storedCredentials = storedCredentials
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

    /// Starts a hash under the key of the tenant's idempotency records.
    func beginIdempotencyHash() -> HMAC<SHA256> {
        self.idempotencyHash.withLock { known in
            let key = self.pseudonymizer.sealingKey
            let hash = known ?? HMAC(key: key.derived(for: "fcm-gateway idempotency 1"))
            known = hash
            return hash
        }
    }

    /// The project of its messages by HTTP v1: its own, or else its service account's.
    package var v1ProjectID: String? { self.tenant.projectID ?? self.v1Credential?.projectID }

    /// FCM's name for a device group: the tenant's own, unless another tenant's groups live beside it.
    ///
    /// A tenant's id has no slash, and callers can't use the reserved prefix, so no group of one tenant can be named
    /// like another's.
    package func upstreamGroupName(_ name: String) -> String {
        self.tenant.prefixesGroups ? "\(ValueRules.reservedGroupPrefix)\(self.id.text)/\(name)" : name
    }

    /// True if a client whose verified certificate has these names may use the tenant's keys. Empty without a
    /// certificate.
    package func admits(clientNames names: [String]) -> Bool {
        guard let clientNames = self.clientNames else { return true }
        return names.contains { clientNames.contains($0) }
    }

    /// True once for each snapshot, so that the log reports a missing setting once.
    package func isGapNews() -> Bool {
        !self.isGapLogged.exchange(true, ordering: .relaxed)
    }

    func hasOpened(_ kind: UpstreamKind) -> Bool {
        kind == .legacy ? self.legacyCredential != nil : self.v1Credential != nil
    }

    /// The reason why FCM can't be called for the tenant, and the remedy. `nil` if it can.
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

    /// The reason why FCM can't be called for the tenant's device groups, and the remedy. `nil` if it can.
    package var missingForGroups: String? {
        guard self.tenant.senderID == nil else { return self.missingCredential }
        return
            "The tenant has no sender id, by which FCM finds its device groups; an operator must set the number of its "
            + "Firebase project (fcm-gateway tenant set \(self.id.text) --sender-id NUMBER)"
    }

    /// Returns the uid of a tenant that is about to be created.
    static func uid(of id: TenantID, _ pseudonymizer: Pseudonymizer) -> UInt64 {
        pseudonymizer.pseudonym(of: id.text).high
    }
}
