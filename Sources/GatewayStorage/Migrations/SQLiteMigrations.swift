import GRDB

/// The schema's history.
///
/// Entries are only ever added; what has been released is never edited.
enum SQLiteMigrations {
    /// Tenants and what belongs to them.
    static let directory = "v001-directory"
    /// The audit's chains.
    static let audit = "v002-audit"
    /// Tenants' device groups.
    static let deviceGroups = "v003-device-groups"
    /// Tokens that FCM reported dead or replaced.
    static let retiredTokens = "v004-retired-tokens"
    /// What became of sends that carried an idempotency key.
    static let idempotency = "v005-idempotency"
    /// Every key that a device group ever had.
    static let deviceGroupKeys = "v007-device-group-keys"
    /// What is signed of the audit.
    static let auditLedger = "v008-audit-ledger"

    /// All migrations in order, each in a transaction of its own.
    static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration(Self.directory, migrate: Self.makeDirectory)
        migrator.registerMigration(Self.audit, migrate: Self.makeAudit)
        migrator.registerMigration(Self.deviceGroups, migrate: Self.makeDeviceGroups)
        migrator.registerMigration(Self.retiredTokens, migrate: Self.makeRetiredTokens)
        migrator.registerMigration(Self.idempotency, migrate: Self.makeIdempotency)
        migrator.registerMigration(Self.deviceGroupKeys, migrate: Self.makeDeviceGroupKeys)
        migrator.registerMigration(Self.auditLedger, migrate: Self.makeAuditLedger)
        return migrator
    }()
}
