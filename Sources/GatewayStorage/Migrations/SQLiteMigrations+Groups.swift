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

    /// Every key that FCM handed out for a group stays one of it, so that callers may keep the first they got.
    ///
    /// `version` is the group's when the key was the latest.
    @Sendable
    static func makeDeviceGroupKeys(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE device_group_keys (
                    tenant TEXT NOT NULL,
                    notification_key TEXT NOT NULL,
                    name TEXT NOT NULL,
                    version INTEGER NOT NULL,
                    PRIMARY KEY (tenant, notification_key),
                    FOREIGN KEY (tenant, name) REFERENCES device_groups (tenant, name) ON DELETE CASCADE
                ) STRICT, WITHOUT ROWID;

                CREATE INDEX device_group_keys_by_name ON device_group_keys (tenant, name, version);

                INSERT OR REPLACE INTO device_group_keys (tenant, notification_key, name, version)
                SELECT tenant, notification_key, name, version FROM device_groups WHERE notification_key IS NOT NULL;

                DROP INDEX device_groups_by_key;
                """
        )
    }
}
