import Configuration

extension AuditConfiguration {
    /// Reads the section `audit`.
    ///
    /// - `audit.mode` (`bounded` or `strict`, default `bounded`).
    /// - `audit.retentionDays` (days, 1–36,500, default 400).
    /// - `audit.checkpointIntervalMs` (ms, 100–600,000, default 10,000).
    /// - `audit.sink` (text, default none): `stdout`, or `file:` and a path, relative to `dataDir`.
    /// - `audit.flushIntervalMs` (ms, 1–1,000, default 10).
    /// - `audit.commitTimeoutMs` (ms, 100–60,000, default 2,000).
    /// - `audit.spoolAfterMs` (ms, 10–60,000, default 100).
    /// - `audit.queueRecords` (records, 100–1,000,000, default 10,000).
    /// - `audit.queueBytes` (bytes, 1 MiB–4 GiB, default 64 MiB).
    /// - `audit.spoolDir` (text, default empty: the data directory).
    /// - `audit.spoolBytes` (bytes, 1 MiB–64 GiB, default 64 MiB).
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with the section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "audit")
        section.choice("mode", into: &self.mode)
        section.wholeNumber("retentionDays", in: 1...36_500, into: &self.retentionDays)
        section.milliseconds("checkpointIntervalMs", in: 100...600_000, into: &self.checkpointInterval)
        section.text("sink", into: &self.sink) { text in
            if text.isEmpty || text == Self.sinkOutput { return nil }
            guard text.hasPrefix(Self.sinkFileScheme) else { return "must be stdout, or file: and a path" }
            let path = text.dropFirst(Self.sinkFileScheme.count)
            return path.isEmpty || path.hasSuffix("/") ? "names no file after file:" : nil
        }
        section.milliseconds("flushIntervalMs", in: 1...1_000, into: &self.flushInterval)
        section.milliseconds("commitTimeoutMs", in: 100...60_000, into: &self.commitTimeout)
        section.milliseconds("spoolAfterMs", in: 10...60_000, into: &self.spoolAfter)
        section.wholeNumber("queueRecords", in: 100...1_000_000, into: &self.queueRecords)
        section.wholeNumber("queueBytes", in: (1 << 20)...(4 << 30), into: &self.queueBytes)
        section.text("spoolDir", into: &self.spoolDir)
        section.wholeNumber("spoolBytes", in: (1 << 20)...(64 << 30), into: &self.spoolBytes)
        try section.finish()
    }
}
