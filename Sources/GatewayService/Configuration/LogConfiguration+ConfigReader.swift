import Configuration

extension LogConfiguration {
    /// Reads the section `log`.
    ///
    /// - `log.level` (`trace`, `debug`, `info`, `notice`, `warning`, `error` or `critical`, default `info`).
    /// - `log.levels.access`, `.http`, `.upstream`, `.audit`, `.state`, `.gateway` (a level each, default `log.level`).
    /// - `log.format` (`json` or `text`, default `json`).
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with the section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "log")
        section.choice("level", into: &self.level)
        for part in LogPart.allCases {
            section.optionalChoice("levels.\(part.rawValue)", into: &self.levels[part])
        }
        section.choice("format", into: &self.format)
        try section.finish()
    }
}
