import Configuration

extension TracingConfiguration {
    /// Reads the section `tracing`.
    ///
    /// - `tracing.propagate` (`all` or `none`, default `all`).
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with the section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "tracing")
        section.choice("propagate", into: &self.propagate)
        try section.finish()
    }
}
