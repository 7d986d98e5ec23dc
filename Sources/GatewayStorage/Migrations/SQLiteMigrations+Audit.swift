import GRDB

extension SQLiteMigrations {
    /// Records outlive their tenant, so nothing here refers to one.
    ///
    /// A record is few columns, since each costs on every insert: those that look-ups narrow by, and `body` for the
    /// rest (`AuditBody`). For the same reason no index runs over the records: the two tables of spans hold one row for
    /// thousands of them. `uid` tells tenants of one name apart, and stands in their records' bodies. The records' table is not strict, see `AuditRowWriter`.
    @Sendable
    static func makeAudit(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE audit_records (
                    writer INTEGER NOT NULL,
                    sequence INTEGER NOT NULL,
                    time INTEGER NOT NULL,
                    tenant TEXT,
                    body BLOB NOT NULL,
                    hash BLOB NOT NULL,
                    PRIMARY KEY (writer, sequence)
                ) WITHOUT ROWID;

                CREATE TABLE audit_spans (
                    writer INTEGER NOT NULL,
                    span INTEGER NOT NULL,
                    min_time INTEGER NOT NULL,
                    max_time INTEGER NOT NULL,
                    PRIMARY KEY (writer, span)
                ) STRICT, WITHOUT ROWID;

                CREATE TABLE audit_tenant_spans (
                    tenant TEXT NOT NULL,
                    writer INTEGER NOT NULL,
                    span INTEGER NOT NULL,
                    uid BLOB NOT NULL,
                    PRIMARY KEY (tenant, writer, span, uid)
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
