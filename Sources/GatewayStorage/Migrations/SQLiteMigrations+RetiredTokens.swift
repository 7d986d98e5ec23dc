import GRDB

extension SQLiteMigrations {
    /// Times are microseconds since 1970; `key` is the first 64 bits of a token's pseudonym.
    ///
    /// A place in the feed is given to an entry when it comes to be fed and is never used again: `last_position` only
    /// rises. The index over them has the fed entries alone.
    @Sendable
    static func makeRetiredTokens(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE retired_token_books (
                    tenant TEXT NOT NULL PRIMARY KEY REFERENCES tenants (id) ON DELETE CASCADE,
                    last_position INTEGER NOT NULL,
                    sent REAL NOT NULL,
                    unregistered REAL NOT NULL,
                    aged_at INTEGER NOT NULL,
                    surplus INTEGER NOT NULL,
                    jump_since INTEGER,
                    jump_sent REAL NOT NULL,
                    jump_unregistered REAL NOT NULL
                ) STRICT, WITHOUT ROWID;

                CREATE TABLE retired_tokens (
                    tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
                    key INTEGER NOT NULL,
                    kind TEXT NOT NULL,
                    state TEXT NOT NULL,
                    since INTEGER NOT NULL,
                    reported_at INTEGER NOT NULL,
                    replacement INTEGER NOT NULL,
                    sealed BLOB NOT NULL,
                    position INTEGER,
                    PRIMARY KEY (tenant, key)
                ) STRICT, WITHOUT ROWID;

                CREATE UNIQUE INDEX retired_tokens_by_position ON retired_tokens (tenant, position)
                WHERE position IS NOT NULL;

                CREATE INDEX retired_tokens_by_report ON retired_tokens (reported_at);
                """
        )
    }
}
