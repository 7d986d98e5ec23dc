import Configuration

extension StoreConfiguration {
    /// Reads the section `store`.
    ///
    /// - `store.url` (text, default `sqlite:gateway.sqlite`): `sqlite:` and a path, relative to `dataDir`.
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with the section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "store")
        section.text("url", into: &self.url) { text in
            // The text is not repeated: an address of another store may hold a password.
            guard text.hasPrefix(Self.sqliteScheme) else {
                return "only sqlite:PATH is supported"
            }
            let path = text.dropFirst(Self.sqliteScheme.count)
            return if path.isEmpty || path.hasSuffix("/") {
                "names no file after sqlite:"
            } else if path.hasPrefix(":") {
                "a store in memory forgets tenants and audit records; name a file"
            } else if path.hasPrefix("//"), !path.hasPrefix("///") {
                "write sqlite:PATH, without a host"
            } else {
                nil
            }
        }
        try section.finish()
    }
}
