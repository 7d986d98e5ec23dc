import GRDB

extension SQLiteMigrations {
    /// What is signed of the audit: checkpoints, which of them is the latest, and where chains begin whose oldest
    /// records were removed.
    ///
    /// What names the latest checkpoint is in none of the audit's own tables: it is there for as long as the gateway's
    /// secrets are, and says what there was when those are emptied.
    ///
    /// The index finds a span's tenants, to check them and to remove them with the span.
    @Sendable
    static func makeAuditLedger(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE audit_checkpoints (
                    number INTEGER NOT NULL PRIMARY KEY,
                    content BLOB NOT NULL,
                    signature BLOB NOT NULL
                ) STRICT;

                CREATE TABLE gateway_checkpoint_end (
                    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
                    number INTEGER NOT NULL,
                    digest BLOB NOT NULL,
                    signature BLOB NOT NULL
                ) STRICT;

                CREATE TABLE audit_cuts (
                    writer INTEGER NOT NULL PRIMARY KEY,
                    sequence INTEGER NOT NULL,
                    hash BLOB NOT NULL,
                    time INTEGER NOT NULL,
                    signature BLOB NOT NULL
                ) STRICT;

                CREATE INDEX audit_tenant_spans_by_span ON audit_tenant_spans (writer, span);
                """
        )
    }
}
