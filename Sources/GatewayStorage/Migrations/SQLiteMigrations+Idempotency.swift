import GRDB

extension SQLiteMigrations {
    /// Times are microseconds since 1970; `key` is the SHA-256 of the caller's key, `content` what is sealed.
    ///
    /// Numbers are never used again, so that a late change of a record that is gone meets no other. How much there is,
    /// by tenant and in all, is kept by triggers: it holds for records that go with their tenant, too. The row of the
    /// total has an empty tenant, which no tenant's name is. `idempotency_mark` says how far the time of keys has come.
    @Sendable
    static func makeIdempotency(_ db: Database) throws {
        try db.execute(
            sql: """
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
                    weight INTEGER NOT NULL,
                    content BLOB NOT NULL,
                    UNIQUE (tenant, route, key)
                ) STRICT;

                CREATE INDEX idempotency_records_by_expiry ON idempotency_records (expires_at);

                CREATE INDEX idempotency_records_finished ON idempotency_records (tenant, id) WHERE is_finished;

                CREATE TABLE idempotency_usage (
                    tenant TEXT NOT NULL PRIMARY KEY,
                    records INTEGER NOT NULL,
                    weight INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID;

                CREATE TABLE idempotency_mark (
                    id INTEGER PRIMARY KEY CHECK (id = 1),
                    time INTEGER NOT NULL,
                    wall INTEGER NOT NULL
                ) STRICT;

                INSERT INTO idempotency_usage (tenant, records, weight) VALUES ('', 0, 0);

                CREATE TRIGGER idempotency_record_added AFTER INSERT ON idempotency_records BEGIN
                    INSERT OR IGNORE INTO idempotency_usage (tenant, records, weight) VALUES (new.tenant, 0, 0);
                    UPDATE idempotency_usage SET records = records + 1, weight = weight + new.weight
                    WHERE tenant IN ('', new.tenant);
                END;

                CREATE TRIGGER idempotency_record_changed AFTER UPDATE OF weight ON idempotency_records BEGIN
                    UPDATE idempotency_usage SET weight = weight + new.weight - old.weight
                    WHERE tenant IN ('', new.tenant);
                END;

                CREATE TRIGGER idempotency_record_removed AFTER DELETE ON idempotency_records BEGIN
                    UPDATE idempotency_usage SET records = records - 1, weight = weight - old.weight
                    WHERE tenant IN ('', old.tenant);
                    DELETE FROM idempotency_usage WHERE tenant = old.tenant AND records <= 0;
                END;
                """
        )
    }
}
