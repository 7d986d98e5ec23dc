import GRDB

extension SQLiteMigrations {
    /// Records outlive their tenant, so nothing here refers to one.
    ///
    /// The records are not a strict table: text with a zero byte is kept as a blob, see `AuditRowWriter`. The one index
    /// finds a tenant's records in the chain's order; `audit_spans` finds times, one row for thousands of records.
    @Sendable
    static func makeAudit(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE audit_records (
                    writer INTEGER NOT NULL,
                    sequence INTEGER NOT NULL,
                    time INTEGER NOT NULL,
                    tenant TEXT,
                    principal TEXT NOT NULL,
                    method TEXT NOT NULL,
                    action TEXT NOT NULL,
                    target_kind TEXT NOT NULL,
                    targets BLOB NOT NULL,
                    object TEXT,
                    recipients INTEGER NOT NULL,
                    accepted INTEGER NOT NULL,
                    bytes INTEGER NOT NULL,
                    outcome TEXT NOT NULL,
                    code TEXT,
                    upstream_code TEXT,
                    fcm_message_id TEXT,
                    message_id TEXT,
                    request_id TEXT NOT NULL,
                    trace_id TEXT,
                    hash BLOB NOT NULL,
                    PRIMARY KEY (writer, sequence)
                ) WITHOUT ROWID;

                CREATE INDEX audit_records_by_tenant ON audit_records (tenant, writer, sequence)
                    WHERE tenant IS NOT NULL;

                CREATE TABLE audit_spans (
                    writer INTEGER NOT NULL,
                    span INTEGER NOT NULL,
                    min_time INTEGER NOT NULL,
                    max_time INTEGER NOT NULL,
                    PRIMARY KEY (writer, span)
                ) STRICT, WITHOUT ROWID;

                CREATE TABLE audit_heads (
                    writer INTEGER NOT NULL PRIMARY KEY,
                    sequence INTEGER NOT NULL,
                    hash BLOB NOT NULL,
                    state TEXT NOT NULL,
                    seal BLOB NOT NULL
                ) STRICT;
                """
        )
    }
}
