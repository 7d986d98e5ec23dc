import GatewayCore
import GatewayUpstream

/// A configuration with everything that it names read and checked: what `serve` starts with, and what a reload brings.
struct LoadedConfiguration: Sendable {
    /// All settings, without the secrets.
    let configuration: GatewayConfiguration
    /// The listeners' certificates.
    let certificates: ListenerCertificates
    /// Tells values apart, by the keys' paths; of secrets, digests.
    let fingerprints: [String: String]
    let sources: ConfigurationInput.Sources

    /// Reads and checks everything; the secrets are not kept with the rest.
    ///
    /// Throws everything that would keep `serve` from starting, by place and key.
    static func read(
        _ input: ConfigurationInput
    ) throws(ConfigurationProblems) -> (LoadedConfiguration, ServingSecrets) {
        let given = try input.configuration()
        let secrets = try given.servingSecrets()
        return (try LoadedConfiguration(given, input), secrets)
    }

    private init(_ given: GatewayConfiguration, _ input: ConfigurationInput) throws(ConfigurationProblems) {
        self.certificates = try input.certificates(given)
        try input.checkAuthorities(given)
        var configuration = given
        configuration.masterKey = nil
        configuration.previousMasterKey = nil
        configuration.admin.token = nil
        self.configuration = configuration
        self.fingerprints = Dictionary(
            uniqueKeysWithValues: ConfigurationTable.keys.map { ($0.path, $0.fingerprint(given)) }
        )
        self.sources = input.sources
    }
}

extension ConfigurationInput {
    /// The certificates in the files that the configuration names; throws what is wrong with them, by place and key.
    package func certificates(_ configuration: GatewayConfiguration) throws(ConfigurationProblems)
        -> ListenerCertificates
    {
        do {
            return try ListenerCertificates(configuration)
        } catch {
            throw ConfigurationProblems(error.problems.map(self.sources.locate))
        }
    }

    /// Checks that the file of upstream servers' authorities, if there is one, can be used.
    package func checkAuthorities(_ configuration: GatewayConfiguration) throws(ConfigurationProblems) {
        do throws(GatewayError) {
            _ = try configuration.upstream.tls()
        } catch {
            let problem = ConfigurationProblem(place: .unknown, key: "upstream.caFile", message: error.message)
            throw ConfigurationProblems([self.sources.locate(problem)])
        }
    }
}
