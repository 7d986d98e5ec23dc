import GRDB

extension SQLiteMigrations {
    /// `client_names` is a JSON array of texts; tenants that were there before ask for no certificate.
    @Sendable
    static func addClientNames(_ db: Database) throws {
        try db.execute(sql: "ALTER TABLE tenants ADD COLUMN client_names TEXT NOT NULL DEFAULT '[]'")
    }
}
