/// The store that keeps tenants, credentials, keys and audit records.
package struct StoreConfiguration: Sendable, Equatable {
    /// The scheme of the embedded store.
    package static let sqliteScheme = "sqlite:"

    /// The store's address: `sqlite:` and a path, relative to the data directory unless absolute.
    package var url: String

    /// Creates the section; what is not named has its default.
    package init(url: String = "sqlite:gateway.sqlite") {
        self.url = url
    }

    /// The database file's path.
    ///
    /// - Parameter dataDir: The configured data directory.
    /// - Returns: The path that `url` names, below `dataDir` unless absolute.
    package func databasePath(dataDir: String) -> String {
        let path = String(self.url.dropFirst(Self.sqliteScheme.count))
        guard !path.hasPrefix("/") else { return path }
        return dataDir.hasSuffix("/") ? dataDir + path : "\(dataDir)/\(path)"
    }
}
