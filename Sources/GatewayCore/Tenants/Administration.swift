import FCMModel

/// Changes the directory for operators. The audit has an intent before each change and an outcome after it.
///
/// Changes of one tenant follow each other, each planned from the result of the one before it, on whichever replica. A
/// change holds its tenant's lock until its outcome is recorded.
///
/// All throw `auditUnavailable` or `storeUnavailable`, and then nothing was done; `outcomeUnknown` if the store's
/// answer was lost; `conflict` if other changes of the tenant don't end; `notFound` if a tenant or key is missing.
package struct Administration: Sendable {
    /// A change that was planned from a snapshot.
    private struct PlannedChange<Answer: Sendable> {
        /// `nil` if there is nothing to do; then nothing is recorded.
        let change: Directory.Change?
        /// The audit's text for the change.
        let object: String
        /// The operator's answer once the change is made.
        let answer: Answer
    }

    /// The most that the body of one change may have, in bytes.
    package static let maxBodyBytes = 64 * 1024

    private let directory: Directory
    let audit: AuditLog
    private let masterKey: MasterKey
    private let pepper: APIKey.Pepper
    let clock: any WallClock
    private let locks = KeyedLock<TenantID>()

    package init(
        directory: Directory,
        audit: AuditLog,
        masterKey: MasterKey,
        pepper: APIKey.Pepper,
        clock: any WallClock
    ) {
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
        try self.directory.snapshot.profile(of: id)
    }

    /// Makes a tenant or replaces its settings.
    package func put(
        _ draft: Tenant.Draft,
        id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (Tenant, isNew: Bool) {
        try await self.put(id, origin: origin) { _ in draft }
    }

    /// Makes a tenant, or replaces its settings by those that the closure returns for the present ones.
    ///
    /// The closure gets `nil` if there is no such tenant. If it throws, nothing changes.
    package func put(
        _ id: TenantID,
        origin: RequestOrigin,
        _ draft: (Tenant?) throws(GatewayError) -> Tenant.Draft
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
                change: .putTenant(tenant, salt: existing?.salt ?? Secret(randomBytes: 32).revealBytes()),
                object: Self.auditObject(tenant, replacing: existing?.tenant),
                answer: (tenant, existing == nil)
            )
        }
    }

    /// Returns the text for the audit: the tenant, and its client names if they change.
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
            // A tenant whose row is refused can be deleted, which frees its name.
            if !snapshot.refused.contains(Directory.RefusedRow(.tenant, id.text, of: id)) {
                try condition(snapshot.profile(of: id))
            }
            return PlannedChange(change: .deleteTenant(id), object: id.text, answer: ())
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
            let profile = try snapshot.profile(of: id)
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
                change: .putCredential(stored),
                object: "\(stored.kind.rawValue) version \(stored.version) \(stored.fingerprint)",
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
            let profile = try snapshot.profile(of: id)
            guard profile.storedCredentials.contains(where: { $0.kind == kind }) else {
                throw GatewayError(.notFound, "The tenant has no \(kind.rawValue) credential")
            }
            return PlannedChange(change: .deleteCredential(kind, id), object: kind.rawValue, answer: ())
        }
    }

    // MARK: Keys

    /// A tenant's keys, oldest first.
    package func keys(of id: TenantID) throws(GatewayError) -> [APIKey.Record] {
        try self.profile(of: id).keys.sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
    }

    /// Makes a key, and returns it in clear: the only time that it is shown.
    package func createKey(
        _ draft: APIKey.Draft,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKey, APIKey.Record) {
        try await self.perform(.keyCreate, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            _ = try snapshot.profile(of: id)
            let key = APIKey.generate()
            let record = self.record(of: key, draft, tenant: id)
            return PlannedChange(change: .addKey(record), object: record.id, answer: (key, record))
        }
    }

    /// Accepts an existing key, so that gateways with separate stores can accept the same one.
    ///
    /// If the same key is there already, nothing changes and nothing is recorded. Throws `conflict` if the key was
    /// revoked here or differs from the draft, or if another key has its id.
    package func importKey(
        _ key: APIKey,
        as draft: APIKey.Draft,
        tenant id: TenantID,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKey.Record, isNew: Bool) {
        try await self.perform(.keyImport, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            _ = try snapshot.profile(of: id)
            let record = self.record(of: key, draft, tenant: id)
            if let known = snapshot.principals[key.id]?.key {
                try Self.requireSame(known, as: record)
                return PlannedChange(change: nil, object: record.id, answer: (known, isNew: false))
            }
            return PlannedChange(change: .addKey(record), object: record.id, answer: (record, isNew: true))
        }
    }

    private static func requireSame(_ known: APIKey.Record, as record: APIKey.Record) throws(GatewayError) {
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

    /// Makes a key like another one, which expires after an overlap of at least 0 seconds; returns the new key in
    /// clear.
    ///
    /// Throws `conflict` if the other key is revoked or has expired.
    package func rotateKey(
        _ keyID: String,
        tenant id: TenantID,
        overlapSeconds: Int,
        origin: RequestOrigin
    ) async throws(GatewayError) -> (APIKey, APIKey.Record) {
        try await self.perform(.keyRotate, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            let now = self.clock.now()
            var old = try snapshot.key(keyID, of: id)
            guard old.isAlive(at: now) else {
                throw GatewayError(.conflict, "The key is revoked or expired; make a new one instead")
            }
            let key = APIKey.generate()
            var record = old
            (record.id, record.digest, record.createdAt) = (key.id, self.pepper.digest(of: key), now)
            let end = now.advanced(by: .seconds(overlapSeconds))
            old.expiresAt = min(old.expiresAt ?? end, end)
            return PlannedChange(
                change: .rotateKey(new: record, old: old),
                object: "\(old.id) to \(record.id)",
                answer: (key, record)
            )
        }
    }

    /// Revokes a key for good. A key whose row is refused is removed.
    package func revokeKey(_ keyID: String, tenant id: TenantID, origin: RequestOrigin) async throws(GatewayError) {
        try await self.perform(.keyRevoke, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            if snapshot.refused.contains(Directory.RefusedRow(.key, keyID, of: id)) {
                return PlannedChange(change: .removeKey(id: keyID, id), object: keyID, answer: ())
            }
            var record = try snapshot.key(keyID, of: id)
            guard record.revokedAt == nil else { return PlannedChange(change: nil, object: keyID, answer: ()) }
            record.revokedAt = self.clock.now()
            return PlannedChange(change: .putKey(record), object: keyID, answer: ())
        }
    }

    private func record(of key: APIKey, _ draft: APIKey.Draft, tenant: TenantID) -> APIKey.Record {
        APIKey.Record(
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

    /// Replaces a tenant's own limits by those that the closure returns for its profile; if it throws, nothing changes.
    package func putLimits(
        of id: TenantID,
        origin: RequestOrigin,
        _ limits: (TenantProfile) throws(GatewayError) -> LimitOverrides
    ) async throws(GatewayError) {
        try await self.perform(.limitsPut, tenant: id, origin: origin) { snapshot throws(GatewayError) in
            let limits = try limits(snapshot.profile(of: id))
            return PlannedChange(change: .putLimits(id, limits), object: id.text, answer: ())
        }
    }

    // MARK: Changing

    private static let lockTimeout = Duration.seconds(30)
    /// At most so many plans of one change.
    private static let maxPlans = 5

    /// Plans a change while no other change of the tenant is under way here, makes it, and records it.
    ///
    /// If another replica has changed the tenant since the plan, the change is planned again. Each plan that is tried
    /// has an intent and an outcome in the audit. An error of the plan is thrown on, and nothing is recorded.
    private func perform<Answer: Sendable>(
        _ action: AuditRecord.Action,
        tenant: TenantID,
        origin: RequestOrigin,
        _ plan: (DirectorySnapshot) throws(GatewayError) -> PlannedChange<Answer>
    ) async throws(GatewayError) -> Answer {
        guard await self.locks.acquire(tenant, until: .now + Self.lockTimeout) else {
            throw GatewayError(.conflict, "Other changes of this tenant are still under way; try again")
        }
        defer { self.locks.release(tenant) }
        for attempt in 1...Self.maxPlans {
            // A refusal, or "nothing to do", must not come from a snapshot that lags either.
            if attempt > 1 || self.directory.isShared { try await self.directory.catchUp() }
            let snapshot = self.directory.snapshot
            let planned = try plan(snapshot)
            guard let change = planned.change else { return planned.answer }
            let uid = self.uid(changedBy: change, in: snapshot)
            var draft = AuditRecord(action, of: tenant, uid: uid, origin, at: self.clock.now())
            draft.object = planned.object
            let isMade = try await self.audit.recording(draft, by: .admin, orThrow: AuditLog.unavailable) {
                record throws(GatewayError) -> Bool in
                defer { record.time = self.clock.now() }
                do throws(GatewayError) {
                    if try await self.directory.apply(change, plannedAt: snapshot.version(of: tenant)) { return true }
                } catch {
                    throw error.noted(in: &record)
                }
                (record.outcome, record.code) = (.failed, GatewayError.Code.conflict.rawValue)
                return false
            }
            if isMade { return planned.answer }
        }
        throw GatewayError(.conflict, "Other replicas keep changing this tenant; try again")
    }

    /// Returns the uid of the changed tenant, or of the tenant that the change makes.
    private func uid(changedBy change: Directory.Change, in snapshot: DirectorySnapshot) -> UInt64 {
        if let profile = snapshot.tenants[change.tenant] { return profile.uid }
        guard case .putTenant(let tenant, let salt) = change else { return 0 }
        return TenantProfile.uid(of: tenant.id, Pseudonymizer(auditKey: self.directory.auditKey, tenantSalt: salt))
    }
}

extension GatewayError {
    /// Records the error as the outcome of an operator's change. Returns the error for the operator.
    func noted(in record: inout AuditRecord) -> GatewayError {
        guard self.leavesOutcomeUnknown else {
            (record.outcome, record.code) = (.failed, self.code.rawValue)
            return self
        }
        (record.outcome, record.code) = (.unknown, OutcomeCode.outcomeUnknown.rawValue)
        return GatewayError(
            .outcomeUnknown,
            "The store's answer was lost, so it is not known whether the change was made; look before you repeat it",
            cause: self.cause
        )
    }
}
