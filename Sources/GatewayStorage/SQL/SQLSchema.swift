import GatewayCore

/// The tables of all stores, in SQLite's SQL. PostgreSQL's driver replaces some words: `INTEGER` by `BIGINT`, `BLOB` by
/// `BYTEA`, `TEXT` by `TEXT COLLATE "C"`, the autoincremented key by an identity, and a table's options by nothing. Its
/// schema adds the function `instr(bytea, bytea)`.
///
/// Statements call functions that each driver provides:
///
/// - `gateway_time()` is the database's time at the moment of the call, in microseconds. Replicas' clocks play no part
///   in it.
/// - `gateway_notify()` notifies other replicas after the commit, see ``SQLDatabase/whenNotified(_:)``. It does nothing
///   in a store without replicas.
/// - `gateway_transaction()` is the transaction's number. Later transactions have higher numbers. It is 0 if
///   transactions never overlap.
/// - `gateway_change_horizon()` is the highest number up to which no transaction is in progress in the current
///   snapshot. Example: 41 and 43 have ended, 42 is in progress, so the horizon is 41. Changes up to the horizon that a
///   snapshot does not show were rolled back.
/// - `gateway_origin()` identifies the database's location, and differs in a restored or copied database.
///
/// Times are microseconds since 1970, Booleans are 0 or 1, lists are JSON texts. Deleting a tenant deletes its rows,
/// except audit records, which outlive it. There are no triggers and no computed columns.
enum SQLSchema {
    static let statements =
        [Self.replicas, Self.epoch, Self.directory, Self.groups, Self.retiredTokens, Self.idempotency, Self.audit]
        .joined(separator: "\n")

    /// The step that adds the tables of batches.
    static let batchVersion = "v101"
    /// The steps after the first release's, which only add to what was there.
    static let additions: [(name: String, statements: String)] = [
        (Self.batchVersion, Self.batches), ("v102", Self.adminTokens),
        ("v103", Self.consoleSessions),
    ]
    static let latestVersion = Self.additions.last?.name ?? ""

    /// The tables, each after those that it refers to.
    static let tables: [String] = ([Self.statements] + Self.additions.map(\.statements))
        .flatMap { $0.split(separator: "\n") }
        .compactMap { line -> String? in
            let command = "CREATE TABLE "
            return line.hasPrefix(command) ? String(line.dropFirst(command.count).prefix { $0 != " " }) : nil
        }

    /// One row per run of a process that serves the store with others. `seen_at` is in the database's time.
    /// `master_key` is the fingerprint of the key with which the process seals. `schema`, since v101, is the latest step of
    /// the schema that the process knows.
    private static let replicas = """
        CREATE TABLE replicas (
            id TEXT NOT NULL PRIMARY KEY,
            started_at INTEGER NOT NULL,
            seen_at INTEGER NOT NULL,
            master_key TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// The store's current ``StoreEpoch``.
    private static let epoch = """
        CREATE TABLE store_epoch (
            id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
            epoch TEXT NOT NULL,
            origin TEXT NOT NULL
        ) STRICT;
        """

    /// A `seal` covers all other columns of its row, and the values that ``SQLDirectoryStore`` binds it to.
    ///
    /// Each change raises `directory_version` in its own transaction. The row's lock orders the changes, so that a
    /// reader of a version has missed none before it. `directory_changes` has the latest change of each tenant, also of
    /// deleted ones.
    private static let directory = """
        CREATE TABLE tenants (
            id TEXT NOT NULL PRIMARY KEY,
            display_name TEXT NOT NULL,
            upstream TEXT NOT NULL,
            project_id TEXT,
            sender_id TEXT,
            prefixes_groups INTEGER NOT NULL,
            is_disabled INTEGER NOT NULL,
            client_names TEXT NOT NULL,
            salt BLOB NOT NULL,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            seal BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX tenants_by_sender ON tenants (sender_id) WHERE sender_id IS NOT NULL;

        CREATE TABLE credentials (
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            version INTEGER NOT NULL,
            wrapped_key BLOB NOT NULL,
            sealed BLOB NOT NULL,
            endpoint TEXT,
            fingerprint TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, kind)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE api_keys (
            id TEXT NOT NULL PRIMARY KEY,
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            digest BLOB NOT NULL,
            scopes TEXT NOT NULL,
            topic_prefixes TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            expires_at INTEGER,
            revoked_at INTEGER,
            seal BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX api_keys_by_tenant ON api_keys (tenant);

        CREATE TABLE limits (
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            scope TEXT NOT NULL,
            policies TEXT NOT NULL,
            PRIMARY KEY (tenant, scope)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE directory_version (
            id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
            version INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE directory_changes (
            tenant TEXT NOT NULL PRIMARY KEY,
            version INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX directory_changes_by_version ON directory_changes (version);

        CREATE TABLE gateway_secrets (
            name TEXT NOT NULL PRIMARY KEY,
            wrapped_key BLOB NOT NULL,
            sealed BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// A group is read and written as a whole, so its members are one text.
    ///
    /// A group keeps each key that FCM issued for it, so that callers may keep using the first. A key's `version` is
    /// the group's version when the key was the latest. `changed_in` is the number of the transaction that made it the
    /// latest.
    ///
    /// A lease exists while a replica changes a group, which may not be stored yet. A lease that has expired, by the
    /// database's time, belonged to a replica that ended before its change did.
    private static let groups = """
        CREATE TABLE device_groups (
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            upstream_name TEXT NOT NULL,
            notification_key TEXT,
            members TEXT NOT NULL,
            is_complete INTEGER NOT NULL,
            version INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, name)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE device_group_keys (
            tenant TEXT NOT NULL,
            notification_key TEXT NOT NULL,
            name TEXT NOT NULL,
            version INTEGER NOT NULL,
            changed_in INTEGER NOT NULL,
            PRIMARY KEY (tenant, notification_key),
            FOREIGN KEY (tenant, name) REFERENCES device_groups (tenant, name) ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE device_group_leases (
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            owner TEXT NOT NULL,
            lease_until INTEGER NOT NULL,
            PRIMARY KEY (tenant, name)
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX device_group_keys_by_name ON device_group_keys (tenant, name, version);

        CREATE INDEX device_group_keys_by_change ON device_group_keys (changed_in);
        """

    /// `key` is the first 64 bits of a token's pseudonym. A bucket is a number of five minutes since 1970.
    ///
    /// A token whose `position` is null is not fed. It gets a position when its bucket `due` arrives, unless it is
    /// suspected or removed. A removed token keeps its row for a day, so that all replicas learn of the removal.
    /// `changed_at` is the database's time of a row's last change.
    ///
    /// The row of `retired_token_feed` has the last position given to any tenant's token.
    ///
    /// `retired_token_counts` counts the judged recipients of each tenant and bucket.
    private static let retiredTokens = """
        CREATE TABLE retired_tokens (
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            key INTEGER NOT NULL,
            kind TEXT NOT NULL,
            state TEXT NOT NULL,
            since INTEGER NOT NULL,
            reported_at INTEGER NOT NULL,
            replacement INTEGER NOT NULL,
            sealed BLOB NOT NULL,
            due INTEGER NOT NULL,
            position INTEGER,
            changed_at INTEGER NOT NULL,
            PRIMARY KEY (tenant, key)
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX retired_tokens_by_position ON retired_tokens (tenant, position) WHERE position IS NOT NULL;

        CREATE INDEX retired_tokens_pending ON retired_tokens (tenant, due, key)
        WHERE position IS NULL AND state IN ('unregistered', 'replaced');

        CREATE INDEX retired_tokens_by_report ON retired_tokens (tenant, reported_at, key) WHERE state <> 'removed';

        CREATE INDEX retired_tokens_by_change ON retired_tokens (changed_at);

        CREATE INDEX retired_tokens_removed ON retired_tokens (changed_at) WHERE state = 'removed';

        CREATE TABLE retired_token_feed (
            id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
            last_position INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE retired_token_counts (
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            bucket INTEGER NOT NULL,
            judged INTEGER NOT NULL,
            unregistered INTEGER NOT NULL,
            PRIMARY KEY (tenant, bucket)
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX retired_token_counts_by_bucket ON retired_token_counts (bucket);
        """

    /// `key` is the SHA-256 of the caller's key. `content` is sealed.
    ///
    /// `owner` is the replica that works on an open record, until `lease_until` in the database's time. A process that
    /// has the store to itself uses neither.
    ///
    /// Numbers are never reused, so that a late change of a deleted record changes no other. `idempotency_usage` has
    /// each tenant's totals, and `idempotency_mark` the progress of the keys' time.
    private static let idempotency = """
        CREATE TABLE idempotency_records (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            route TEXT NOT NULL,
            key BLOB NOT NULL,
            fingerprint BLOB NOT NULL,
            message_id TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            is_finished INTEGER NOT NULL,
            owner TEXT NOT NULL,
            lease_until INTEGER NOT NULL,
            weight INTEGER NOT NULL,
            content BLOB NOT NULL,
            UNIQUE (tenant, route, key)
        ) STRICT;

        CREATE INDEX idempotency_records_by_expiry ON idempotency_records (expires_at);

        CREATE INDEX idempotency_records_finished ON idempotency_records (tenant, id) WHERE is_finished = 1;

        CREATE TABLE idempotency_usage (
            tenant TEXT NOT NULL PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
            records INTEGER NOT NULL,
            weight INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE idempotency_mark (
            id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
            time INTEGER NOT NULL,
            wall INTEGER NOT NULL
        ) STRICT;
        """

    /// The named tokens of operators. A `digest` covers the token and the row.
    private static let adminTokens = """
        CREATE TABLE admin_tokens (
            name TEXT NOT NULL PRIMARY KEY,
            role TEXT NOT NULL,
            digest BLOB NOT NULL,
            created_at INTEGER NOT NULL,
            expires_at INTEGER
        ) STRICT, WITHOUT ROWID;
        """

    /// The sessions of operators in the console. `digest` is that of the cookie, `owner_digest` covers the row, and
    /// `token_name` is null for the token of the configuration.
    private static let consoleSessions = """
        CREATE TABLE console_sessions (
            digest BLOB NOT NULL PRIMARY KEY,
            token_name TEXT,
            owner_digest BLOB NOT NULL,
            created_at INTEGER NOT NULL,
            used_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// A batch's counters are the sums of what its chunks have recorded. `sealed` is its message.
    ///
    /// A chunk is waiting (0), claimed (1), held back because its batch is open or paused (2), or done (3). `slice` is 0
    /// until a claim fixes it for the round. `canary` is the number of its recipients that belong to the canary.
    /// Recipients and results are in a table of their own, so that a change of many chunks rewrites small rows.
    ///
    /// `batch_usage` has the messages of each tenant that are not over, and the recipients and bytes of all that is kept.
    /// `batch_fan_outs` has the time of a tenant's next send to a topic or condition. A pause of a project ends at
    /// `until`; `factor` is the part of each tenant's limit that counts then, in thousandths.
    private static let batches = """
        CREATE TABLE batches (
            id TEXT NOT NULL PRIMARY KEY,
            tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            is_message INTEGER NOT NULL,
            digest BLOB NOT NULL,
            label TEXT,
            created_by TEXT NOT NULL,
            options TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            state TEXT NOT NULL,
            reason TEXT,
            credential TEXT,
            api_key TEXT NOT NULL,
            canary_over INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            expires_at INTEGER NOT NULL,
            started_at INTEGER,
            finished_at INTEGER,
            total INTEGER NOT NULL,
            accepted INTEGER NOT NULL,
            rejected INTEGER NOT NULL,
            unknown INTEGER NOT NULL,
            expired INTEGER NOT NULL,
            cancelled INTEGER NOT NULL,
            delete_at INTEGER,
            retention INTEGER NOT NULL,
            weight INTEGER NOT NULL,
            sealed BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX batches_by_tenant ON batches (tenant, is_message, created_at, id);

        CREATE INDEX batches_by_time ON batches (created_at, id) WHERE is_message = 0;

        CREATE INDEX batches_unfinished ON batches (tenant) WHERE finished_at IS NULL AND is_message = 0;

        CREATE INDEX batches_expiring ON batches (expires_at) WHERE finished_at IS NULL;

        CREATE INDEX batches_paused ON batches (created_at) WHERE state = 'paused';

        CREATE INDEX batches_over ON batches (delete_at) WHERE delete_at IS NOT NULL;

        CREATE TABLE batch_parts (
            batch TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
            part INTEGER NOT NULL,
            digest BLOB NOT NULL,
            recipients INTEGER NOT NULL,
            PRIMARY KEY (batch, part)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE batch_chunks (
            batch TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            tenant TEXT NOT NULL,
            state INTEGER NOT NULL,
            priority INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            pending INTEGER NOT NULL,
            round INTEGER NOT NULL,
            slice INTEGER NOT NULL,
            max_slice INTEGER NOT NULL,
            canary INTEGER NOT NULL,
            retries INTEGER NOT NULL,
            owner TEXT NOT NULL,
            lease_until INTEGER NOT NULL,
            PRIMARY KEY (batch, number)
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX batch_chunks_waiting ON batch_chunks (tenant, priority, due_at, batch, number) WHERE state = 0;

        CREATE INDEX batch_chunks_claimed ON batch_chunks (lease_until) WHERE state = 1;

        CREATE TABLE batch_contents (
            batch TEXT NOT NULL,
            number INTEGER NOT NULL,
            pending BLOB NOT NULL,
            results BLOB NOT NULL,
            PRIMARY KEY (batch, number),
            FOREIGN KEY (batch, number) REFERENCES batch_chunks (batch, number) ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE batch_usage (
            tenant TEXT NOT NULL PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
            messages INTEGER NOT NULL,
            recipients INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE batch_fan_outs (
            tenant TEXT NOT NULL PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
            next_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE project_pauses (
            project TEXT NOT NULL PRIMARY KEY,
            until INTEGER NOT NULL,
            factor INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        ALTER TABLE replicas ADD COLUMN schema TEXT NOT NULL DEFAULT 'v100';
        """

    /// Records outlive their tenant, so no table here refers to one.
    ///
    /// A record has few columns: those that look-ups filter by, and `body` for the rest (`AuditCodec`). `tenant_uid`
    /// repeats a value of the body. Chains are read by the primary key, lists by the two indexes; decision 0037 states
    /// their cost.
    ///
    /// `audit_writers` says which replica writes a chain, if several share the store. `gateway_checkpoint_end` names
    /// the latest checkpoint and the last removed one. It exists for as long as the gateway's secrets, and so reveals
    /// that the audit's tables were emptied. `audit_sinks` names the latest checkpoint that each second sink is known
    /// to hold.
    private static let audit = """
        CREATE TABLE audit_records (
            writer INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            time INTEGER NOT NULL,
            tenant TEXT,
            tenant_uid INTEGER NOT NULL,
            body BLOB NOT NULL,
            hash BLOB NOT NULL,
            PRIMARY KEY (writer, sequence)
        ) STRICT, WITHOUT ROWID;

        CREATE INDEX audit_records_by_tenant ON audit_records (tenant, tenant_uid, time, writer, sequence)
        WHERE tenant IS NOT NULL;

        CREATE INDEX audit_records_by_time ON audit_records (time, writer, sequence);

        CREATE TABLE audit_heads (
            writer INTEGER NOT NULL PRIMARY KEY,
            sequence INTEGER NOT NULL,
            hash BLOB NOT NULL,
            state TEXT NOT NULL,
            seal BLOB NOT NULL
        ) STRICT;

        CREATE TABLE audit_writers (
            writer INTEGER NOT NULL PRIMARY KEY,
            replica TEXT NOT NULL
        ) STRICT;

        CREATE TABLE audit_checkpoints (
            number INTEGER NOT NULL PRIMARY KEY,
            content BLOB NOT NULL,
            signature BLOB NOT NULL
        ) STRICT;

        CREATE TABLE audit_sinks (
            name TEXT NOT NULL PRIMARY KEY,
            delivered INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE gateway_checkpoint_end (
            id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
            number INTEGER NOT NULL,
            digest BLOB NOT NULL,
            removed INTEGER NOT NULL,
            removed_digest BLOB NOT NULL,
            signature BLOB NOT NULL
        ) STRICT;

        CREATE TABLE audit_truncations (
            writer INTEGER NOT NULL PRIMARY KEY,
            sequence INTEGER NOT NULL,
            hash BLOB NOT NULL,
            time INTEGER NOT NULL,
            signature BLOB NOT NULL
        ) STRICT;
        """
}

/// Identifies a life of the store. A restored or copied store gets another epoch, so that no reader continues in it
/// with numbers that mean something else there (decision 0055).
///
///     store A, epoch e1:  positions 1 … 900 ──► a client's cursor (e1, 900)
///                            │ backup at 700
///     restored, epoch e2: positions 1 … 700 …   refuses (e1, 900): its 701 is another token
///
/// A store records its `gateway_origin()` with its epoch. A store with another origin than the recorded one renews its
/// epoch.
package enum StoreEpoch {
    /// Renews the epoch if the store has none, or its origin has changed.
    static func confirm(in database: any SQLDatabase) async throws(GatewayError) {
        let isConfirmed = try await database.read(scope: .gateway) { try Self.current($0).isConfirmed }
        guard !isConfirmed else { return }
        try await database.write(scope: .gateway, isolation: .serializable) { try Self.confirm($0) }
    }

    /// The same within the caller's transaction.
    static func confirm(_ db: any SQLConnection) throws {
        if try !Self.current(db).isConfirmed { try Self.renew(db) }
    }

    /// Gives the store another epoch, within the caller's transaction. A copy of a store calls this last, and does not
    /// copy the epoch.
    package static func renew(_ db: any SQLConnection) throws {
        try SQLBatchStore.pauseAll(db)
        // Numbers from another server may be far ahead of this one's, and would hide the keys that carry them.
        let horizon = try db.first("SELECT gateway_change_horizon()") { try $0.int64(0) } ?? 0
        try db.execute("UPDATE device_group_keys SET changed_in = 0 WHERE changed_in > $1", [.int(horizon)])
        try db.execute(
            """
            INSERT INTO store_epoch (id, epoch, origin) VALUES (1, $1, gateway_origin())
            ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, origin = excluded.origin
            """,
            [.text(String(UInt64.random(in: .min ... .max), radix: 36))]
        )
    }

    /// The epoch, and true if the store's origin is the recorded one.
    static func current(_ db: any SQLConnection) throws -> (epoch: String, isConfirmed: Bool) {
        let sql = "SELECT epoch, CAST(CASE WHEN origin = gateway_origin() THEN 1 ELSE 0 END AS BIGINT) FROM store_epoch"
        return try db.first(sql) { (epoch: try $0.text(0), isConfirmed: try $0.bool(1)) } ?? ("", false)
    }

    /// The epoch alone, which a tenant's requests may read. Empty before the store has one.
    static func text(_ db: any SQLConnection) throws -> String {
        try db.first("SELECT epoch FROM store_epoch") { try $0.text(0) } ?? ""
    }
}
