import FCMModel

/// What operators do to the directory: each change is recorded before it takes effect and once it has.
///
/// Changes of one tenant are made one after the other, each from what the one before it left, whichever replica made that.
/// All throw `auditUnavailable` or `storeUnavailable`, and then nothing was done, `outcomeUnknown` where the store's answer
/// was lost, `conflict` where others keep changing the tenant; those of a tenant or key that has to be there `notFound`.
package struct Administration: Sendable {
    /// The most that the body of one change may have, in bytes.
    package static let maxBodyBytes = 64 * 1024

    private let directory: Directory
    let audit: AuditLog
    private let masterKey: MasterKey
    private let pepper: KeyPepper
    let clock: any WallClock
    private let locks = KeyedLock<TenantID>()

    package init(directory: Directory, audit: AuditLog, masterKey: MasterKey, pepper: KeyPepper, clock: any WallClock) {
        self.directory = directory
        self.audit = audit
        self.masterKey = masterKey
        self.pepper = pepper
        self.clock = clock
    }

    // MARK: Tenants

    package var tenants: [Tenant] {
        self.directory.snapshot.tenants.values.map(\.tenant).sorted { $0.id < $1.id }
    }

    package func profile(of id: TenantID) throws(GatewayError) -> TenantProfile {
        try Self.profile(of: id, in: self.directory.snapshot)
    }

    private static func profile(
        of id: TenantID,
        in snapshot: DirectorySnapshot
    ) throws(GatewayError) -> TenantProfile {
        guard let profile = snapshot.tenants[id] else { throw GatewayError(.notFound, "There is no such tenant") }
        return profile
    }

    /// Makes a tenant or replaces its settings; says whether it is new.
    package func put(
        _ draft: TenantDraft,
        id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (Tenant, isNew: Bool) {
        try await self.put(id, origin: origin) { _ in draft }
    }

    /// Makes a tenant, or changes its settings to what the closure makes of the present ones; says whether it is new.
    ///
    /// The closure gets `nil` where there is no such tenant, and may throw, which changes nothing.
    package func put(
        _ id: TenantID,
        origin: RequestOrigin,
        _ draft: (Tenant?) throws(GatewayError) -> TenantDraft
    ) async throws(GatewayError) -> (Tenant, isNew: Bool) {
        try await self.perform(.tenantPut, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            let now = self.clock.now()
            let existing = snapshot.tenants[id]
            let draft = try draft(existing?.tenant)
            let tenant = Tenant(
                id: id,
                displayName: draft.displayName,
                upstream: draft.upstream,
                projectID: draft.projectID,
                senderID: draft.senderID,
                isDisabled: draft.isDisabled,
                clientNames: draft.clientNames,
                createdAt: existing?.tenant.createdAt ?? now,
                updatedAt: now
            )
            return PlannedChange(
                .putTenant(tenant, salt: existing?.salt ?? Secret(randomBytes: 32).revealBytes()),
                Self.auditObject(tenant, replacing: existing?.tenant),
                answer: (tenant, existing == nil)
            )
        }
    }

    /// What the audit says of a change of a tenant: whom it is about, and who may use its keys where that changes.
    private static func auditObject(_ tenant: Tenant, replacing existing: Tenant?) -> String {
        guard tenant.clientNames != existing?.clientNames ?? [] else { return tenant.id.text }
        let names = tenant.clientNames.map(\.text).joined(separator: " ")
        return "\(tenant.id.text) client names: \(names.isEmpty ? "none" : names)"
    }

    /// Removes a tenant with its credentials, keys, limits and the salt of its pseudonyms.
    package func deleteTenant(
        _ id: TenantID,
        origin: RequestOrigin,
        if condition: (TenantProfile) throws(GatewayError) -> Void = { _ in }
    ) async throws(GatewayError) {
        try await self.perform(.tenantDelete, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            // A tenant whose row is refused can be deleted: that is how its name becomes free again.
            if !snapshot.refused.contains(RefusedRow(.tenant, id.text, of: id)) {
                try condition(try Self.profile(of: id, in: snapshot))
            }
            return PlannedChange(.deleteTenant(id), id.text, answer: ())
        }
    }

    // MARK: Credentials

    /// Seals a credential for a tenant; the next send uses it.
    package func put<Credential: TenantCredential>(
        _ credential: Credential,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> StoredCredential {
        try await self.perform(.credentialPut, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            let profile = try Self.profile(of: id, in: snapshot)
            let earlier = profile.storedCredentials.first { $0.kind == Credential.kind }
            let stored = try StoredCredential(
                sealing: credential,
                tenant: id,
                salt: profile.salt,
                version: (earlier?.version ?? 0) + 1,
                under: self.masterKey,
                at: self.clock.now()
            )
            return PlannedChange(
                .putCredential(stored),
                "\(stored.kind.rawValue) version \(stored.version) \(stored.fingerprint)",
                answer: stored
            )
        }
    }

    package func deleteCredential(
        _ kind: UpstreamKind,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) {
        try await self.perform(.credentialDelete, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            let profile = try Self.profile(of: id, in: snapshot)
            guard profile.storedCredentials.contains(where: { $0.kind == kind }) else {
                throw GatewayError(.notFound, "The tenant has no \(kind.rawValue) credential")
            }
            return PlannedChange(.deleteCredential(kind, id), kind.rawValue, answer: ())
        }
    }

    // MARK: Keys

    /// A tenant's keys, oldest first.
    package func keys(of id: TenantID) throws(GatewayError) -> [APIKeyRecord] {
        try self.profile(of: id).keys.sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
    }

    /// Makes a key; the answer has it in clear, for the one time it is shown.
    package func createKey(
        _ draft: APIKeyDraft,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKey, APIKeyRecord) {
        try await self.perform(.keyCreate, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            _ = try Self.profile(of: id, in: snapshot)
            let key = APIKey.generate()
            let record = self.record(of: key, draft, tenant: id)
            return PlannedChange(.addKey(record), record.id, answer: (key, record))
        }
    }

    /// Accepts a key that exists already, so that gateways with stores of their own can accept the same key; says
    /// whether it is new here.
    ///
    /// To import a key again as it is changes nothing, and nothing is recorded. Throws `conflict` for a key that was
    /// revoked here, that differs from the draft, or whose id is that of another key.
    package func importKey(
        _ key: APIKey,
        as draft: APIKeyDraft,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKeyRecord, isNew: Bool) {
        try await self.perform(.keyImport, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            _ = try Self.profile(of: id, in: snapshot)
            let record = self.record(of: key, draft, tenant: id)
            if let known = snapshot.principals[key.id]?.key {
                try Self.requireSame(known, as: record)
                return PlannedChange(nil, record.id, answer: (known, isNew: false))
            }
            return PlannedChange(.addKey(record), record.id, answer: (record, isNew: true))
        }
    }

    private static func requireSame(_ known: APIKeyRecord, as record: APIKeyRecord) throws(GatewayError) {
        guard known.tenant == record.tenant, known.digest == record.digest else {
            throw GatewayError(.conflict, "Another key has this id here; keys of one id can't live side by side")
        }
        guard known.revokedAt == nil else {
            throw GatewayError(.conflict, "The key was revoked here, which is for good; make another one")
        }
        guard known.name == record.name, known.scopes == record.scopes, known.expiresAt == record.expiresAt,
            Set(known.topicPrefixes) == Set(record.topicPrefixes)
        else {
            throw GatewayError(
                .conflict,
                "The tenant has this key with another name, scopes, topic prefixes or expiry; a key never changes"
            )
        }
    }

    /// Makes a key like another, in clear, and lets the other live on for a while, of at least 0 seconds.
    ///
    /// Throws `conflict` for a key that is dead already.
    package func rotateKey(
        _ keyID: String,
        tenant id: TenantID,
        overlapSeconds: Int,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKey, APIKeyRecord) {
        try await self.perform(.keyRotate, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            let now = self.clock.now()
            var old = try Self.key(keyID, of: id, in: snapshot)
            guard old.isAlive(at: now) else {
                throw GatewayError(.conflict, "The key is revoked or expired; make a new one instead")
            }
            let key = APIKey.generate()
            var record = old
            (record.id, record.digest, record.createdAt) = (key.id, self.pepper.digest(of: key), now)
            let end = now.advanced(by: .seconds(overlapSeconds))
            old.expiresAt = min(old.expiresAt ?? end, end)
            return PlannedChange(.rotateKey(new: record, old: old), "\(old.id) to \(record.id)", answer: (key, record))
        }
    }

    /// Revokes a key at once and for good; one whose row is refused is removed.
    package func revokeKey(_ keyID: String, tenant id: TenantID, origin: RequestOrigin) async throws(GatewayError) {
        try await self.perform(.keyRevoke, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            if snapshot.refused.contains(RefusedRow(.key, keyID, of: id)) {
                return PlannedChange(.removeKey(id: keyID, id), keyID, answer: ())
            }
            var record = try Self.key(keyID, of: id, in: snapshot)
            guard record.revokedAt == nil else { return PlannedChange(nil, keyID, answer: ()) }
            record.revokedAt = self.clock.now()
            return PlannedChange(.putKey(record), keyID, answer: ())
        }
    }

    private static func key(
        _ keyID: String,
        of id: TenantID,
        in snapshot: DirectorySnapshot
    ) throws(GatewayError) -> APIKeyRecord {
        guard let record = snapshot.principals[keyID]?.key, record.tenant == id else {
            throw GatewayError(.notFound, "The tenant has no such key")
        }
        return record
    }

    private func record(of key: APIKey, _ draft: APIKeyDraft, tenant: TenantID) -> APIKeyRecord {
        APIKeyRecord(
            id: key.id,
            tenant: tenant,
            name: draft.name,
            digest: self.pepper.digest(of: key),
            scopes: draft.scopes,
            topicPrefixes: draft.topicPrefixes,
            createdAt: self.clock.now(),
            expiresAt: draft.expiresAt
        )
    }

    // MARK: Limits

    /// Changes a tenant's own limits to what the closure makes of the present ones; it may throw, which changes nothing.
    package func putLimits(
        of id: TenantID,
        origin: RequestOrigin,
        _ limits: (TenantProfile) throws(GatewayError) -> LimitOverrides
    ) async throws(GatewayError) {
        try await self.perform(.limitsPut, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            let limits = try limits(try Self.profile(of: id, in: snapshot))
            return PlannedChange(.putLimits(id, limits), id.text, answer: ())
        }
    }

    // MARK: Changing

    private static let lockTimeout = Duration.seconds(30)
    /// Plans of one change, of which other replicas come before all but the last.
    private static let maxPlans = 5

    /// Plans a change while no other of the tenant is under way here, and makes it; it is in force then, and recorded.
    ///
    /// Where another replica has changed the tenant since, the change is planned once more; each plan that comes to be
    /// tried has an intent and an outcome of its own. What the plan throws is thrown on, and nothing is recorded.
    private func perform<Answer: Sendable>(
        _ action: AuditAction,
        tenant: TenantID,
        origin: RequestOrigin,
        _ plan: (DirectorySnapshot) throws(GatewayError) -> PlannedChange<Answer>
    ) async throws(GatewayError) -> Answer {
        guard await self.locks.acquire(tenant, until: .now + Self.lockTimeout) else {
            throw GatewayError(.conflict, "Other changes of this tenant are still under way; try again")
        }
        var isLocked = true
        defer { if isLocked { self.locks.release(tenant) } }
        for attempt in 1...Self.maxPlans {
            // Refusals, and that there is nothing to do, must not come from a snapshot that lags either.
            if attempt > 1 || self.directory.isShared { try await self.directory.catchUp() }
            let (snapshot, version) = self.directory.basis(of: tenant)
            let planned = try plan(snapshot)
            guard let change = planned.change else { return planned.answer }
            let uid = self.uid(changedBy: change, in: snapshot)
            var draft = AuditRecord(action, of: change.tenant, uid: uid, origin, at: self.clock.now())
            draft.object = planned.object
            let isMade = try await self.audit.recording(draft, by: .admin, orThrow: AuditLog.unavailable) {
                record throws(GatewayError) -> Bool in
                var isStale = false
                defer {
                    record.time = self.clock.now()
                    if !isStale {
                        // Its record may wait for the disk; the tenant's next change need not.
                        self.locks.release(tenant)
                        isLocked = false
                    }
                }
                do throws(GatewayError) {
                    isStale = try await !self.directory.apply(change, plannedAt: version)
                } catch {
                    throw Self.note(error, in: &record)
                }
                if isStale { (record.outcome, record.code) = (.failed, GatewayError.Code.conflict.rawValue) }
                return !isStale
            }
            if isMade { return planned.answer }
        }
        throw GatewayError(.conflict, "Other replicas keep changing this tenant; try again")
    }

    /// Notes why a change was not made, or that nobody knows whether it was; the error that says so.
    private static func note(_ error: GatewayError, in record: inout AuditRecord) -> GatewayError {
        guard error.leavesOutcomeUnknown else {
            (record.outcome, record.code) = (.failed, error.code.rawValue)
            return error
        }
        (record.outcome, record.code) = (.unknown, OutcomeCode.outcomeUnknown.rawValue)
        return GatewayError(
            .outcomeUnknown,
            "The store's answer was lost, so it is not known whether the change was made; look before you repeat it",
            cause: error.cause
        )
    }

    /// The uid of a tenant that is there, or of the one that a change is to make.
    private func uid(changedBy change: DirectoryChange, in snapshot: DirectorySnapshot) -> UInt64 {
        if let profile = snapshot.tenants[change.tenant] { return profile.uid }
        guard case .putTenant(let tenant, let salt) = change else { return 0 }
        return TenantProfile.uid(of: tenant.id, self.directory.pseudonymizer(tenantSalt: salt))
    }
}

/// What an operator wants done, worked out from the directory as it is.
private struct PlannedChange<Answer: Sendable> {
    /// `nil` where there is nothing to do, and then nothing is recorded.
    let change: DirectoryChange?
    /// What the audit names as changed.
    let object: String
    /// What the operator is told once it is done.
    let answer: Answer

    init(_ change: DirectoryChange?, _ object: String, answer: Answer) {
        (self.change, self.object, self.answer) = (change, object, answer)
    }
}
