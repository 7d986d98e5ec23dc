import Crypto
import GatewayCore

/// A configuration with everything that it names read and checked: what `serve` starts with, and what a reload brings.
struct LoadedConfiguration: Sendable {
    /// All settings, without the secrets.
    let configuration: GatewayConfiguration
    /// The limits of tenants that have none of their own.
    let limits: LimitPolicies
    /// The listeners' certificates.
    let certificates: ListenerCertificates
    /// What tells values apart, by the keys' paths: the value as `config show` prints it, of a secret its digest.
    let fingerprints: [String: String]
    /// Where the values come from, by the keys' paths.
    private let sources: [String: ConfigurationSource]

    /// Reads and checks everything.
    ///
    /// - Parameter input: the file and the environment.
    /// - Returns: the configuration, and the secrets, which are not kept in it.
    /// - Throws: everything that would keep `serve` from starting, by place and key.
    static func read(
        _ input: ConfigurationInput
    ) throws(ConfigurationProblems) -> (LoadedConfiguration, ServingSecrets) {
        let given = try input.configuration()
        let secrets = try given.servingSecrets()
        return (try LoadedConfiguration(given, secrets, input), secrets)
    }

    private init(
        _ given: GatewayConfiguration,
        _ secrets: ServingSecrets,
        _ input: ConfigurationInput
    ) throws(ConfigurationProblems) {
        self.limits = try input.locating { () throws(ConfigurationProblems) in
            try LimitPolicies(given.limits.defaults)
        }
        self.certificates = try input.locating { () throws(ConfigurationProblems) in try ListenerCertificates(given) }
        try input.locating { () throws(ConfigurationProblems) in try given.upstream.checkAuthorities() }
        var configuration = given
        configuration.masterKey = nil
        configuration.previousMasterKey = nil
        configuration.admin.token = nil
        self.configuration = configuration
        let rows = input.describe()
        self.sources = Dictionary(uniqueKeysWithValues: rows.map { ($0.key, $0.source) })
        var fingerprints = Dictionary(uniqueKeysWithValues: rows.map { ($0.key, $0.value) })
        fingerprints["masterKey"] = Self.digest(secrets.masterKey.revealed)
        if let previous = secrets.previousMasterKey {
            fingerprints["previousMasterKey"] = Self.digest(previous.revealed)
        }
        fingerprints["admin.token"] = Self.digest(Array(secrets.adminToken.revealed.utf8))
        self.fingerprints = fingerprints
    }

    /// A problem with a value, with the place that the value comes from.
    func located(_ problem: ConfigurationProblem) -> ConfigurationProblem {
        var located = problem
        switch problem.key.flatMap({ self.sources[$0] }) {
        case .file(let name, let line)?: located.place = .file(name, line: line)
        case .variable(let name)?: located.place = .variable(name)
        case .builtIn?, nil: break
        }
        return located
    }

    private static func digest(_ bytes: [UInt8]) -> String {
        SHA256.hash(data: bytes).description
    }
}
