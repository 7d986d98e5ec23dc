/// The store that keeps tenants, credentials, keys and audit records.
struct StoreConfiguration: Sendable, Equatable {
    /// The scheme of the embedded store.
    static let sqliteScheme = "sqlite:"

    /// The store's address: `sqlite:` and a path, relative to the data directory unless absolute.
    var url: String

    /// Creates the section; what is not named has its default.
    init(url: String = "sqlite:gateway.sqlite") {
        self.url = url
    }

    /// The database file's path.
    ///
    /// - Parameter dataDir: The configured data directory.
    /// - Returns: The path that `url` names, below `dataDir` unless absolute.
    func databasePath(dataDir: String) -> String {
        let path = String(self.url.dropFirst(Self.sqliteScheme.count))
        guard !path.hasPrefix("/") else { return path }
        return dataDir.hasSuffix("/") ? dataDir + path : "\(dataDir)/\(path)"
    }
}
