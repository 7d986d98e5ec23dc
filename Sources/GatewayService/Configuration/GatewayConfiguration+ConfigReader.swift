import Configuration
import Foundation

extension GatewayConfiguration {
    /// Reads the configuration from a file and the environment, the environment first.
    ///
    /// - Parameters:
    ///   - file: The YAML file's path; nil reads none.
    ///   - environment: The process's variables.
    /// - Returns: The configuration in force.
    /// - Throws: Everything that is wrong, not only the first.
    static func load(
        file: String?,
        environment: [String: String]
    ) throws(ConfigurationProblems) -> GatewayConfiguration {
        try ConfigurationInput(file: file, environment: environment).configuration()
    }

    /// Reads every section and the keys outside of one.
    ///
    /// - `eventLoops` (1–1,024, default the number of cores).
    /// - `dataDir` (path, default `/var/lib/fcm-gateway`).
    /// - `masterKey` (secret, base64 of 32 bytes, no default).
    /// - `previousMasterKey` (secret, base64 of 32 other bytes, no default).
    ///
    /// - Parameter reader: The root reader, whose last provider holds the defaults.
    /// - Throws: Everything wrong with any section.
    init(reader: ConfigReader) throws(ConfigurationProblems) {
        self.init()
        var section = SectionReader(reader, section: "")
        section.collect { () throws(ConfigurationProblems) in self.http = try .init(reader: reader) }
        section.collect { () throws(ConfigurationProblems) in self.admin = try .init(reader: reader) }
        section.collect { () throws(ConfigurationProblems) in self.store = try .init(reader: reader) }
        section.collect { () throws(ConfigurationProblems) in self.limits = try .init(reader: reader) }
        section.collect { () throws(ConfigurationProblems) in self.upstream = try .init(reader: reader) }
        section.collect { () throws(ConfigurationProblems) in self.audit = try .init(reader: reader) }
        section.collect { () throws(ConfigurationProblems) in self.log = try .init(reader: reader) }
        section.collect { () throws(ConfigurationProblems) in self.tracing = try .init(reader: reader) }
        section.wholeNumber("eventLoops", in: 1...1_024, into: &self.eventLoops)
        section.text("dataDir", into: &self.dataDir, check: SectionReader.notEmpty)
        self.masterKey = section.secret("masterKey", convert: Self.masterKeyBytes)
        self.previousMasterKey = section.secret("previousMasterKey", convert: Self.masterKeyBytes)
        if let previous = self.previousMasterKey, previous.revealed == self.masterKey?.revealed {
            section.report("previousMasterKey", or: "masterKey", "is the same key as masterKey; leave it out")
        }
        if self.http.port == self.admin.port, self.http.port != 0 {
            section.report("admin.port", or: "http.port", "admin.port and http.port must differ")
        }
        try section.finish()
    }

    private static func masterKeyBytes(_ text: String) throws(SectionReader.Invalid) -> [UInt8] {
        guard let bytes = Data(base64Encoded: text), bytes.count == Self.masterKeyBytes else {
            throw SectionReader.Invalid("must be base64 of exactly \(Self.masterKeyBytes) bytes")
        }
        return [UInt8](bytes)
    }
}
