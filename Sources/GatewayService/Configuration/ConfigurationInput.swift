import FCMModel

/// The merged configuration. The environment overrides the file, and the file overrides the defaults.
package struct ConfigurationInput {
    /// The variables of the command line's verbs. They do not configure a server.
    private static let clientVariables: Set<String> = [
        "GATEWAY_URL", "GATEWAY_KEY", "GATEWAY_KEY_FILE", "GATEWAY_ADMIN_URL", "GATEWAY_ADMIN_TOKEN",
        "GATEWAY_ADMIN_TOKEN_FILE", "GATEWAY_CA_FILE", "GATEWAY_CLIENT_CERTIFICATE_FILE", "GATEWAY_CLIENT_KEY_FILE",
    ]

    /// The sources of the values in force, by path. A key without a source has its default.
    package struct Sources: Sendable {
        fileprivate var byPath: [String: ConfigurationProblem.Source] = [:]
        /// The path of the file, as given.
        package fileprivate(set) var file: String?

        package subscript(path: String) -> ConfigurationProblem.Source { self.byPath[path] ?? .builtIn }

        /// Adds the place where the problem's key was set. If only the problem's other key was set, adds the place of
        /// that key.
        package func locate(_ problem: ConfigurationProblem) -> ConfigurationProblem {
            var located = problem
            let path = [problem.key, problem.otherKey].compactMap(\.self).first { self[$0] != .builtIn }
            if let path { (located.source, located.key) = (self[path], path) }
            return located
        }
    }

    /// One line of `config show`.
    package struct Row: Sendable {
        package let key: ConfigurationKey
        /// The value in force as text. Empty if there is none, and `<redacted>` for a secret.
        package let value: String
        package let source: ConfigurationProblem.Source
    }

    package private(set) var sources = Sources()
    /// The configuration in force, as far as it is usable.
    private var values = GatewayConfiguration()
    private var problems: [ConfigurationProblem]

    /// Reads the environment and, if there is one, the file. ``configuration()`` throws the problems of both.
    package init(file path: String?, environment: [String: String]) {
        let file = path.map { ConfigurationFile(YAMLSource(path: $0, maxBytes: ConfigurationFile.maxBytes)) }
        self.init(file: file, environment: environment)
    }

    init(file: ConfigurationFile?, environment: [String: String]) {
        self.problems = file?.problems ?? []
        var assignments = file?.values ?? [:]
        if let file {
            self.sources.byPath = file.lines.mapValues { .file(file.name, line: $0) }
            self.sources.file = file.name
        }
        for key in ConfigurationTable.keys {
            do throws(ConfigurationProblems) {
                guard let (text, variable) = try Self.text(of: key, in: environment) else { continue }
                assignments[key.path] = key.assignmentOfText(text)
                self.sources.byPath[key.path] = .variable(variable)
            } catch {
                self.problems += error.problems
            }
        }
        let known = Self.clientVariables.union(ConfigurationTable.keys.flatMap(\.variables))
        for name in environment.keys.sorted() where name.hasPrefix("GATEWAY_") && !known.contains(name) {
            let message = "is not known\(NearestName.hint(for: name, among: known))"
            self.problems.append(ConfigurationProblem(.variable(name), message: message))
        }
        for key in ConfigurationTable.keys {
            for message in assignments[key.path]?(&self.values) ?? [] {
                self.problems.append(self.sources.locate(ConfigurationProblem(key: key.path, message: message)))
            }
        }
        self.problems += self.values.problems.map(self.sources.locate)
    }

    /// Returns a key's variable and its text. A secret may also come from the file that a variable names. Returns `nil`
    /// if no variable is set.
    private static func text(
        of key: ConfigurationKey,
        in environment: [String: String]
    ) throws(ConfigurationProblems) -> (text: String, variable: String)? {
        guard key.isSecret else { return environment[key.variable].map { ($0, key.variable) } }
        return try SecretVariable.find(key.variable, in: environment).map { ($0.value.revealed, $0.variable) }
    }

    /// Returns the configuration in force. Throws all problems of the file, the environment and the values, by place.
    package func configuration() throws(ConfigurationProblems) -> GatewayConfiguration {
        guard self.problems.isEmpty else { throw ConfigurationProblems(self.problems) }
        return self.values
    }

    package func describe() -> [Row] {
        ConfigurationTable.keys.map { key in
            Row(key: key, value: key.shown(self.values), source: self.sources[key.path])
        }
    }
}
