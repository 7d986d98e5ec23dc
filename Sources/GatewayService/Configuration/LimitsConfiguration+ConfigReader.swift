import Configuration

extension LimitsConfiguration {
    /// Reads the section `limits`.
    ///
    /// - `limits.redisUrl` (text, default none): refused when set, because shared limits are not supported yet.
    /// - `limits.defaults.device` (policies, default 180/60 s burst 60 and 4,000/3,600 s burst 1,000).
    /// - `limits.defaults.deviceCollapsible` (policies, default 1/180 s burst 20).
    /// - `limits.defaults.topic` (policies, default 900/60 s burst 100).
    /// - `limits.defaults.tenant` (policies, default 9,000/1 s burst 9,000).
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with the section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "limits")
        var redisURL = ""
        section.text("redisUrl", into: &redisURL) { text in
            text.isEmpty ? nil : "limits shared through Redis are not supported yet; leave this unset"
        }
        section.policies("defaults.device", into: &self.defaults.device)
        section.policies("defaults.deviceCollapsible", into: &self.defaults.deviceCollapsible)
        section.policies("defaults.topic", into: &self.defaults.topic)
        section.policies("defaults.tenant", into: &self.defaults.tenant)
        try section.finish()
    }
}
