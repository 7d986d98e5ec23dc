import Configuration

extension HTTPListenerConfiguration {
    /// Reads the section `http`.
    ///
    /// - `http.host` (text, default `0.0.0.0`), `http.port` (0–65535, default 8080).
    /// - `http.tls.certificateFile`, `.privateKeyFile`, `.clientCaFile` (paths, default none).
    /// - `http.keepAliveTimeoutMs`, `.headTimeoutMs`, `.bodyTimeoutMs`, `.writeStallTimeoutMs`, `.maxConnections`: see
    ///   ``ConnectionBoundsConfiguration/read(_:)``; defaults 75,000, 5,000, 10,000, 10,000 and 16,384.
    /// - `http.maxInFlight` (requests, 1–1,000,000, default 1,024).
    /// - `http.maxBufferedBytes` (bytes, 1,048,576–68,719,476,736, default 67,108,864).
    /// - `http.maxLagMs` (ms, 3–60,000, default 4).
    /// - `http.drainGraceMs` (ms, 0–300,000, default 5,000).
    /// - `http.shutdownTimeoutMs` (ms, 1,000–600,000, default 25,000).
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with the section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "http")
        section.text("host", into: &self.host, check: SectionReader.notEmpty)
        section.wholeNumber("port", in: 0...65_535, into: &self.port)
        self.tls = TLSFilesConfiguration.read(&section)
        self.bounds.read(&section)
        section.wholeNumber("maxInFlight", in: 1...1_000_000, into: &self.maxInFlight)
        // One body as large as any may be has to fit.
        section.wholeNumber("maxBufferedBytes", in: 1_048_576...68_719_476_736, into: &self.maxBufferedBytes)
        // A turn of the loop may take two milliseconds without being long.
        section.milliseconds("maxLagMs", in: 3...60_000, into: &self.maxLag)
        section.milliseconds("drainGraceMs", in: 0...300_000, into: &self.drainGrace)
        section.milliseconds("shutdownTimeoutMs", in: 1_000...600_000, into: &self.shutdownTimeout)
        try section.finish()
    }
}
