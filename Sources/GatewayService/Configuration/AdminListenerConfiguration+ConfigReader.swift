import Configuration

extension AdminListenerConfiguration {
    /// Reads the section `admin`.
    ///
    /// - `admin.host` (text, default `127.0.0.1`), `admin.port` (0–65535, default 8081).
    /// - `admin.tls.certificateFile`, `.privateKeyFile`, `.clientCaFile` (paths, default none).
    /// - `admin.keepAliveTimeoutMs`, `.headTimeoutMs`, `.bodyTimeoutMs`, `.writeStallTimeoutMs`, `.maxConnections`: see
    ///   ``ConnectionBoundsConfiguration/read(_:)``; defaults 75,000, 5,000, 10,000, 10,000 and 256.
    /// - `admin.token` (secret, no default): at least 32 visible ASCII characters.
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with the section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "admin")
        section.text("host", into: &self.host, check: SectionReader.notEmpty)
        section.wholeNumber("port", in: 0...65_535, into: &self.port)
        self.tls = TLSFilesConfiguration.read(&section)
        self.bounds.read(&section)
        self.token = section.secret("token") { text throws(SectionReader.Invalid) in
            guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw SectionReader.Invalid(
                    "must be visible ASCII characters without spaces, as it travels in a header"
                )
            }
            guard text.utf8.count >= Self.minTokenCharacters else {
                throw SectionReader.Invalid("must have at least \(Self.minTokenCharacters) characters")
            }
            return text
        }
        try section.finish()
    }
}
