import Foundation
import GatewayCore
import GatewayService
import GatewayStorage

/// Examines the store and its audit trail; changes nothing.
struct StoreCheck: Sendable {
    struct Result: Sendable {
        var findings: [Finding] = []
        /// The store's content; `nil` if the store is missing, unreadable or of an earlier version.
        var inspection: SQLSecretStore.Inspection?
        /// The sealed secrets that no given master key opens.
        var unopened: Set<SealedSecret> = []
        var isMasterKeyTried = false
        var isServed = false
    }

    /// Larger files are checked only with `--thorough`, because a check reads the whole file.
    private static let maxCheckedBytes = 1 << 30

    private static let backup = "Stop the gateway, keep a copy of the file, and restore a backup"

    let configuration: GatewayConfiguration
    let isThorough: Bool

    func examine() async -> Result {
        if self.configuration.postgreSQL != nil { return await self.examinePostgreSQL() }
        var result = Result()
        let path = self.configuration.databasePath
        guard FileManager.default.fileExists(atPath: path) else {
            result.findings = [.ok(.store, path, "does not exist yet; fcm-gateway serve creates it")]
            return result
        }
        do {
            result.isServed = try StoreLock.isHeld(at: path)
            let database = try SQLiteReadOnlyDatabase(path: path)
            defer { try? database.close() }
            let schema = try await database.schema()
            if schema.isCurrent {
                let inspection = try await SQLSecretStore(database: database).inspection()
                result.inspection = inspection
                let count = inspection.tenants.count
                let tenants = "\(count) tenant\(count == 1 ? "" : "s")"
                result.findings.append(.ok(.store, path, "opens (\(schema.name)), with \(tenants)"))
                if let key = self.configuration.masterKey {
                    let masterKey = try MasterKey(key, previous: self.configuration.previousMasterKey)
                    let announced = try result.isServed ? StoreLock.announcement(at: path) : nil
                    result.findings += self.secrets(Set([announced].compactMap(\.self)), inspection, masterKey, &result)
                    result.findings += try await self.rows(database, masterKey)
                }
            } else {
                result.findings.append(Self.outdated(path, schema.name))
            }
            result.findings.insert(await self.structure(path, database), at: 1)
            result.findings.append(try await Self.audit(database, isServed: result.isServed))
        } catch  where error.code == .notFound {
            result.findings.append(.ok(.store, path, "holds nothing yet; fcm-gateway serve creates its tables"))
        } catch {
            let cause = error.cause.map { ": \($0)" } ?? ""
            let isFull = DataDirectoryCheck.freeBytes(path).map { $0 < DataDirectoryCheck.problemBytes } ?? false
            let advice = isFull ? "Free space on the file's disk, then run doctor again" : Self.advice(error)
            result.findings.append(.problem(.store, path, error.message + cause, advice))
        }
        return result
    }

    /// Examines a PostgreSQL store, except for its structure, which the server maintains itself.
    private func examinePostgreSQL() async -> Result {
        var result = Result()
        let subject = "PostgreSQL"
        do {
            result.isServed = try self.configuration.isDataDirectoryServed()
            let database = try await self.configuration.openStoreForReading()
            let inspection = try await SQLSecretStore(database: database).inspection()
            result.inspection = inspection
            let count = inspection.tenants.count
            result.findings.append(.ok(.store, subject, "opens, with \(count) tenant\(count == 1 ? "" : "s")"))
            if let key = self.configuration.masterKey {
                let masterKey = try MasterKey(key, previous: self.configuration.previousMasterKey)
                let served = try await SQLReplicaStore.masterKeys(in: database)
                result.findings += self.secrets(served, inspection, masterKey, &result)
                result.findings += try await self.rows(database, masterKey)
            }
            result.findings.append(try await Self.audit(database, isServed: false))
        } catch {
            let cause = error.cause.map { ": \($0)" } ?? ""
            let advice = "Check store.url and its password; see docs/operations/postgresql.md"
            result.findings.append(.problem(.store, subject, error.message + cause, advice))
        }
        return result
    }

    private static func outdated(_ path: String, _ schema: String) -> Finding {
        .warning(
            .store,
            path,
            "is from an earlier version (\(schema)); its secrets were not checked",
            "Copy the store before this version serves it: the upgrade can't be undone"
        )
    }

    private func structure(_ path: String, _ database: SQLiteReadOnlyDatabase) async -> Finding {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let bytes = (attributes?[.size] as? NSNumber)?.intValue ?? 0
        guard self.isThorough || bytes <= Self.maxCheckedBytes else {
            return .ok(.store, "structure", "not checked, as the file has \(bytes >> 20) MiB; --thorough checks it")
        }
        let faults: [String]
        do {
            faults = try await database.faults()
        } catch {
            faults = [error.message]
        }
        guard let first = faults.first else { return .ok(.store, "structure", "SQLite finds no fault") }
        return .problem(.store, "structure", "the file is damaged: \(first)", Self.backup)
    }

    private func secrets(
        _ servedBy: Set<String>,
        _ inspection: SQLSecretStore.Inspection,
        _ masterKey: MasterKey,
        _ result: inout Result
    ) -> [Finding] {
        let plan = Rewrapping(inspection.sealed, under: masterKey)
        result.unopened = Set(plan.unopened)
        result.isMasterKeyTried = true
        var findings = [Self.opening(plan, of: inspection.sealed.count, masterKey)]
        if let other = servedBy.first(where: { $0 != masterKey.fingerprint }) {
            findings.append(
                .problem(
                    .store,
                    "master key",
                    "a gateway that serves the store was started with a different key (\(other)); doctor was given "
                        + "\(masterKey.fingerprint)",
                    "Give doctor the gateway's own variables, or restart the gateway"
                )
            )
        }
        return findings
    }

    /// Checks the seals of the rows of tenants, limits and keys, if the master key opens the key that seals them.
    private func rows(
        _ database: any SQLDatabase,
        _ masterKey: MasterKey
    ) async throws(GatewayError) -> [Finding] {
        let store = SQLSecretStore(database: database)
        let stored = try await store.gatewaySecrets()
        guard let secrets = try? GatewaySecrets(stored: stored, masterKey: masterKey) else { return [] }
        let refused = try await store.refusedRows(by: RowSealer(keyPepper: secrets.keyPepper))
        guard let first = refused.first else {
            return [.ok(.store, "directory", "a gateway wrote all rows of tenants, limits and keys")]
        }
        return [
            .problem(
                .store,
                "directory",
                "\(refused.count) of the rows were not written by a gateway of this release and are not served; the first "
                    + "is \(first)",
                "If a later release wrote the rows, use that release. Otherwise find out who can write to the store; then "
                    + "restore a backup, or delete these tenants and revoke these keys"
            )
        ]
    }

    private static func opening(_ plan: Rewrapping, of count: Int, _ masterKey: MasterKey) -> Finding {
        let subject = "master key"
        if !plan.unopened.isEmpty, plan.unopened.count == count {
            return .problem(
                .store,
                subject,
                "opens none of the \(count) sealed secrets: the store was made with another key",
                "Set GATEWAY_MASTER_KEY to the store's key. While the key is being changed, set "
                    + "GATEWAY_PREVIOUS_MASTER_KEY to the old key"
            )
        }
        if let first = plan.unopened.first {
            return .problem(
                .store,
                subject,
                "does not open \(plan.unopened.count) of \(count) sealed secrets; the first is \(first.name)",
                "Store these credentials again, or set GATEWAY_PREVIOUS_MASTER_KEY to the key that sealed them"
            )
        }
        if !plan.exchanges.isEmpty {
            let seen = "\(plan.exchanges.count) of \(count) secrets are still sealed by the previous key"
            return .warning(.store, subject, seen, "fcm-gateway credential rewrap")
        }
        if masterKey.hasPrevious {
            let seen = "opens all \(count) secrets; the previous key is no longer needed"
            return .warning(.store, subject, seen, "Remove GATEWAY_PREVIOUS_MASTER_KEY, and restart the gateway")
        }
        return .ok(.store, subject, "opens all \(count) sealed secrets")
    }

    private static func audit(
        _ database: any SQLDatabase,
        isServed: Bool
    ) async throws(GatewayError) -> Finding {
        let store = SQLAuditStore(database: database)
        let heads = try await store.heads()
        let records = heads.reduce(0) { $0 + $1.sequence }
        let seen = "\(records) records in \(heads.count) chain\(heads.count == 1 ? "" : "s")"
        let written = try await store.liveWriters()
        let open = heads.filter { $0.state == .open && !written.contains($0.writer) }
        guard open.count > (isServed ? 1 : 0), let first = open.first else {
            let verifier = AuditVerifier(store: store, sealer: nil)
            guard let verdict = try await verifier.verifyEnds() else {
                return .ok(.audit, nil, "\(seen); fcm-gateway audit verify checks them")
            }
            let advice = "Keep a copy of the store; see \"The audit was changed\" in docs/operations/playbooks.md"
            return .problem(.audit, nil, AuditFinding(verdict).text.plain, advice)
        }
        let end = "writer \(first.writer) ended uncleanly; fcm-gateway audit verify exits with 2"
        let advice = "Start the gateway to close the chain, and look in the log for why the process ended"
        return .warning(.audit, nil, "\(seen); \(end)", advice)
    }

    private static func advice(_ error: GatewayError) -> String {
        switch error.code {
        case .invalid: "Check that store.url is the gateway's store, and that this version is not older than the store"
        case .storeUnavailable where error.message.contains("damaged"): Self.backup
        case .storeUnavailable, .overloaded, .notFound, .conflict, .preconditionFailed, .auditUnavailable, .cancelled,
            .outcomeUnknown:
            "Check the owner of the store's files, and the disk"
        }
    }
}
