import Foundation
import GatewayCore
import GatewayService
import GatewayStorage

/// Examines the store and its audit trail; changes nothing.
struct StoreCheck: Sendable {
    struct Result: Sendable {
        var findings: [Finding] = []
        /// The store's content; `nil` if it can't be opened, or does not exist yet.
        var inspection: SQLSecretStore.Inspection?
        /// The credentials that no given master key opens.
        var unopened: Set<SealedSecret> = []
        var isMasterKeyTried = false
        var isServed = false
    }

    /// Larger files are checked on request only, since a check reads the whole file.
    private static let maxCheckedBytes = 1 << 30

    private static let backup = "Stop the gateway, keep a copy of the file, and go back to a backup"

    let configuration: GatewayConfiguration
    let isThorough: Bool

    func examine() async -> Result {
        if self.configuration.postgreSQL != nil { return await self.examinePostgreSQL() }
        var result = Result()
        let path = self.configuration.databasePath
        guard FileManager.default.fileExists(atPath: path) else {
            result.findings = [.ok(.store, path, "is not there yet; serve creates it")]
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
            result.findings.append(.ok(.store, path, "holds nothing yet; serve makes the store in it"))
        } catch {
            let cause = error.cause.map { ": \($0)" } ?? ""
            let isFull = DataDirectoryCheck.freeBytes(path).map { $0 < DataDirectoryCheck.problemBytes } ?? false
            let advice = isFull ? "Make room on its disk first, then look again" : Self.advice(error)
            result.findings.append(.problem(.store, path, error.message + cause, advice))
        }
        return result
    }

    /// The same for PostgreSQL, which looks after its structure itself.
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
            let advice = "See that store.url and its password are the server's, and docs/operations/postgresql.md"
            result.findings.append(.problem(.store, subject, error.message + cause, advice))
        }
        return result
    }

    private static func outdated(_ path: String, _ schema: String) -> Finding {
        .warning(
            .store,
            path,
            "is of an earlier version (\(schema)); its secrets were not looked at",
            "Make a copy of it before this version serves it: serve brings it up to date for good"
        )
    }

    private func structure(_ path: String, _ database: SQLiteReadOnlyDatabase) async -> Finding {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let bytes = (attributes?[.size] as? NSNumber)?.intValue ?? 0
        guard self.isThorough || bytes <= Self.maxCheckedBytes else {
            return .ok(.store, "structure", "not checked, because the file has \(bytes >> 20) MiB; use --thorough")
        }
        let faults: [String]
        do {
            faults = try await database.faults()
        } catch {
            faults = [error.message]
        }
        guard let first = faults.first else { return .ok(.store, "structure", "SQLite finds no fault in it") }
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
                    "a gateway that serves the store was started with another one (\(other)) than this "
                        + "(\(masterKey.fingerprint))",
                    "Give doctor the gateway's own variables, or restart the gateway"
                )
            )
        }
        return findings
    }

    /// Reports whether the directory's rows are as a gateway wrote them, if the master key opens the key that seals
    /// them.
    private func rows(
        _ database: any SQLDatabase,
        _ masterKey: MasterKey
    ) async throws(GatewayError) -> [Finding] {
        let store = SQLSecretStore(database: database)
        let stored = try await store.gatewaySecrets()
        guard let secrets = try? GatewaySecrets(stored: stored, masterKey: masterKey) else { return [] }
        let refused = try await store.refusedRows(by: RowSealer(keyPepper: secrets.keyPepper))
        guard let first = refused.first else {
            return [.ok(.store, "directory", "the rows of tenants, limits and keys are as a gateway left them")]
        }
        return [
            .problem(
                .store,
                "directory",
                "\(refused.count) of the rows were not written by a gateway of this release and are not served, the first: "
                    + "\(first)",
                "Use the later release if one wrote them, or else see who can write to the store. Go back to a backup, or "
                    + "delete these tenants and revoke these keys"
            )
        ]
    }

    private static func opening(_ plan: Rewrapping, of count: Int, _ masterKey: MasterKey) -> Finding {
        let subject = "master key"
        if !plan.unopened.isEmpty, plan.unopened.count == count {
            return .problem(
                .store,
                subject,
                "opens none of the \(count) sealed secrets: it is not the store's",
                "Set GATEWAY_MASTER_KEY to the key that the store was made with, or the key before it as "
                    + "GATEWAY_PREVIOUS_MASTER_KEY while it is being changed"
            )
        }
        if let first = plan.unopened.first {
            return .problem(
                .store,
                subject,
                "does not open \(plan.unopened.count) of \(count) sealed secrets, the first \(first.name)",
                "Put these credentials anew, or give the key that they were sealed by as GATEWAY_PREVIOUS_MASTER_KEY"
            )
        }
        if !plan.exchanges.isEmpty {
            let seen = "\(plan.exchanges.count) of \(count) secrets are still sealed by the previous one"
            return .warning(.store, subject, seen, "fcm-gateway credential rewrap")
        }
        if masterKey.hasPrevious {
            let seen = "opens all \(count) secrets; the previous one is no longer needed"
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
        let seen = "\(records) records of \(heads.count) start\(heads.count == 1 ? "" : "s")"
        let written = try await store.liveWriters()
        let open = heads.filter { $0.state == .open && !written.contains($0.writer) }
        guard open.count > (isServed ? 1 : 0), let first = open.first else {
            let verifier = AuditVerifier(store: store, sealer: nil)
            guard let verdict = try await verifier.verifyEnds() else {
                return .ok(.audit, nil, "\(seen); audit verify checks them")
            }
            let advice = "Keep a copy of the store; see \"The audit was changed\" in docs/operations/playbooks.md"
            return .problem(.audit, nil, AuditFinding(verdict).text.plain, advice)
        }
        let end = "start \(first.writer) ended uncleanly, so that audit verify exits with 2"
        let advice = "Start the gateway: that closes the chain. Then see in its log why it ended"
        return .warning(.audit, nil, "\(seen); \(end)", advice)
    }

    private static func advice(_ error: GatewayError) -> String {
        switch error.code {
        case .invalid: "See that store.url names the gateway's store, and that this version is not older than the store"
        case .storeUnavailable where error.message.contains("damaged"): Self.backup
        case .storeUnavailable, .overloaded, .notFound, .conflict, .preconditionFailed, .auditUnavailable, .cancelled,
            .outcomeUnknown:
            "See who owns the file and those beside it, and whether the disk is well"
        }
    }
}
