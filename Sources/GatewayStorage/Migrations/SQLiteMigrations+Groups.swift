import GRDB

extension SQLiteMigrations {
    /// `members` is a JSON array of tokens with their standing: a group is always read and written whole.
    @Sendable
    static func makeDeviceGroups(_ db: Database) throws {
        try db.execute(
            sql: """
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

                CREATE INDEX device_groups_by_key ON device_groups (tenant, notification_key)
                WHERE notification_key IS NOT NULL;
                """
        )
    }
}
