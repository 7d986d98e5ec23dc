package import GatewayCore

/// All secrets in a store that are sealed by the master key, and the inspection of a store for commands.
package struct SQLSecretStore: GatewaySecretStore {
    /// A store's contents for an operator who checks its health.
    package struct Inspection: Sendable, Hashable {
        /// A tenant and its credentials, sealed as they are stored.
        package struct TenantCredentials: Sendable, Hashable {
            package var tenant: Tenant
            package var credentials: [StoredCredential]

            package init(tenant: Tenant, credentials: [StoredCredential]) {
                self.tenant = tenant
                self.credentials = credentials
            }
        }

        package var sealed: [SealedSecret]
        package var tenants: [TenantCredentials]
    }

    private let database: any SQLDatabase

    package init(database: any SQLDatabase) {
        self.database = database
    }

    package func all() async throws(GatewayError) -> [SealedSecret] {
        try await self.database.read(scope: .gateway) { try Self.all($0) }
    }

    private static func all(_ db: any SQLConnection) throws -> [SealedSecret] {
        let secrets = try db.rows("SELECT name, wrapped_key, sealed FROM gateway_secrets ORDER BY name") { row in
            SealedSecret(try row.parsed(0) { GatewaySecret(rawValue: $0) }, try row.envelope(1))
        }
        let salts = try db.rows("SELECT id, salt FROM tenants") { (try $0.text(0), try $0.bytes(1)) }
        let saltByTenant = Dictionary(uniqueKeysWithValues: salts)
        let credentials = try DirectoryRows(db: db, sealer: nil).credentials().known
        return secrets + credentials.map { SealedSecret($0, salt: saltByTenant[$0.tenant.text] ?? []) }
    }

    /// The gateway's own stored secrets. Unknown ones are left out.
    package func gatewaySecrets() async throws(GatewayError) -> [GatewaySecret: Envelope] {
        try await self.database.read(scope: .gateway) { db in
            var secrets: [GatewaySecret: Envelope] = [:]
            try db.query("SELECT name, wrapped_key, sealed FROM gateway_secrets", []) { row in
                if let secret = GatewaySecret(rawValue: try row.text(0)) { secrets[secret] = try row.envelope(1) }
                return true
            }
            return secrets
        }
    }

    package func gatewaySecrets(
        orInsert candidates: [GatewaySecret: Envelope],
        at end: CheckpointEnd
    ) async throws(GatewayError) -> [GatewaySecret: Envelope] {
        try await self.database.write(scope: .gateway, isolation: .serializable) { db in
            // In a store that has been used, a missing end was removed by someone, and stays missing.
            if try !SQLAuditStore.isInUse(db) { try SQLAuditStore.put(end, db) }
            var stored: [GatewaySecret: Envelope] = [:]
            for (secret, envelope) in candidates {
                try db.execute(
                    """
                    INSERT INTO gateway_secrets (name, wrapped_key, sealed) VALUES ($1, $2, $3)
                    ON CONFLICT (name) DO NOTHING
                    """,
                    [.text(secret.rawValue), .bytes(envelope.wrappedKey), .bytes(envelope.sealed)]
                )
                stored[secret] = try db.first(
                    "SELECT wrapped_key, sealed FROM gateway_secrets WHERE name = $1",
                    [.text(secret.rawValue)]
                ) { try $0.envelope(0) }
            }
            return stored
        }
    }

    /// Exchanges wrapped keys and records their number, in one transaction: a crash leaves all of it or nothing.
    ///
    /// A secret that was replaced since it was read stays as it is. The old wrapped keys are overwritten.
    /// `requireMasterKey` checks within the transaction that the new keys may be used: a process that starts meanwhile
    /// waits for the transaction's end and reads its result. The isolation level lets each statement see what was
    /// committed before it, also by a process for which this transaction waited.
    package func apply(
        _ exchanges: [Rewrapping.Exchange],
        requireMasterKey: @escaping @Sendable (any SQLConnection) throws -> Void,
        record: @escaping @Sendable (_ count: Int) -> AuditRecord,
        sealer: AuditSealer
    ) async throws(GatewayError) -> Int {
        let count = try await self.database.write(scope: .gateway, isolation: .readCommitted) { db in
            try requireMasterKey(db)
            let count = try exchanges.reduce(0) { $0 + (try Self.apply($1, db)) }
            guard count > 0 else { return 0 }
            let last = try db.first("SELECT writer FROM audit_heads ORDER BY writer DESC LIMIT 1") { try $0.int(0) }
            let closed = AuditClosedChain(record(count), writer: (last ?? 0) + 1, sealer: sealer)
            try SQLAuditStore.append(closed.records, head: closed.head, db)
            return count
        }
        await self.database.eraseDeleted()
        return count
    }

    private static func apply(_ exchange: Rewrapping.Exchange, _ db: any SQLConnection) throws -> Int {
        let (new, old) = (exchange.new.wrappedKey, exchange.old.envelope.wrappedKey)
        switch exchange.old.place {
        case .gateway(let secret):
            return try db.execute(
                "UPDATE gateway_secrets SET wrapped_key = $1 WHERE name = $2 AND wrapped_key = $3",
                [.bytes(new), .text(secret.rawValue), .bytes(old)]
            )
        case .credential(let tenant, let kind, let version):
            return try db.execute(
                """
                UPDATE credentials SET wrapped_key = $1
                WHERE tenant = $2 AND kind = $3 AND version = $4 AND wrapped_key = $5
                """,
                [.bytes(new), .text(tenant), .text(kind.rawValue), .int(version), .bytes(old)]
            )
        }
    }

    package func inspection() async throws(GatewayError) -> Inspection {
        try await self.database.read(scope: .gateway) { db in
            let contents = try DirectoryRows(db: db, sealer: nil).contents()
            let credentials = Dictionary(grouping: contents.credentials, by: \.tenant)
            return Inspection(
                sealed: try Self.all(db),
                tenants: contents.tenants.map { .init(tenant: $0, credentials: credentials[$0.id] ?? []) }
            )
        }
    }

    /// The rows of the directory that the gateway does not serve because their seal is not genuine.
    package func refusedRows(by sealer: RowSealer) async throws(GatewayError) -> [Directory.RefusedRow] {
        try await self.database.read(scope: .gateway) { try DirectoryRows(db: $0, sealer: sealer).contents().refused }
    }

    /// The salt of a tenant's pseudonyms. `nil` if there is no such tenant, since the salt is deleted with it.
    package func salt(of tenant: TenantID) async throws(GatewayError) -> [UInt8]? {
        try await self.database.read(scope: .gateway) { db in
            try db.first("SELECT salt FROM tenants WHERE id = $1", [.text(tenant)]) { try $0.bytes(0) }
        }
    }
}
