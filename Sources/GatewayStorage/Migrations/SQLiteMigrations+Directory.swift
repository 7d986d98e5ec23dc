import GRDB

extension SQLiteMigrations {
    /// Times are microseconds since 1970.
    ///
    /// `client_names` is a JSON array of texts. A `seal` covers all columns
    /// of its row (`DirectoryRows`), so that a later migration of these tables has to see to the seals as well.
    @Sendable
    static func makeDirectory(_ db: Database) throws {
        try db.execute(sql: "PRAGMA application_id = \(SQLiteSchema.applicationID)")
        try db.execute(
            sql: """
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

                CREATE TABLE gateway_secrets (
                    name TEXT NOT NULL PRIMARY KEY,
                    wrapped_key BLOB NOT NULL,
                    sealed BLOB NOT NULL
                ) STRICT, WITHOUT ROWID;
                """
        )
    }
}
