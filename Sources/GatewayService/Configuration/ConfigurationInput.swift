/// The file and the environment brought together: environment over file over defaults.
package struct ConfigurationInput {
    /// The variables the command line's own verbs read; they configure no server.
    private static let clientVariables: Set<String> = [
        "GATEWAY_URL", "GATEWAY_KEY", "GATEWAY_KEY_FILE", "GATEWAY_ADMIN_URL", "GATEWAY_ADMIN_TOKEN",
        "GATEWAY_ADMIN_TOKEN_FILE",
    ]

    /// Where a value in force comes from.
    package enum Source: Sendable, Equatable, CustomStringConvertible {
        case builtIn
        /// The file, at a line from 1.
        case file(String, line: Int)
        /// The environment, by the variable's name.
        case variable(String)

        /// `default`, `file:line` or the variable's name.
        package var description: String {
            switch self {
            case .builtIn: "default"
            case .file(let name, let line): "\(name):\(line)"
            case .variable(let name): name
            }
        }
    }

    /// Where the values in force come from, by path; a key that nothing sets has its default.
    package struct Sources: Sendable {
        fileprivate var byPath: [String: Source] = [:]

        package subscript(path: String) -> Source { self.byPath[path] ?? .builtIn }

        /// A problem with where its key was set, or the other key that takes part.
        package func locate(_ problem: ConfigurationProblem) -> ConfigurationProblem {
            var located = problem
            for path in [problem.key, problem.otherKey].compactMap(\.self) {
                switch self[path] {
                case .builtIn: continue
                case .file(let name, let line): located.place = .file(name, line: line)
                case .variable(let name): located.place = .variable(name)
                }
                located.key = path
                return located
            }
            return located
        }
    }

    /// One line of `config show`.
    package struct Row: Sendable {
        package let key: ConfigurationKey
        /// The value in force as text: empty when there is none, `<redacted>` for a secret.
        package let value: String
        package let source: Source
    }

    package private(set) var sources = Sources()
    /// What is in force, as far as it can be used.
    private var values = GatewayConfiguration()
    private var problems: [ConfigurationProblem]

    /// Reads the file, if there is one, and the environment; what is wrong with them comes out of ``configuration()``.
    package init(file path: String?, environment: [String: String]) {
        self.init(file: path.map { ConfigurationFile(path: $0) }, environment: environment)
    }

    /// Brings a file that was already read and the environment together.
    init(file: ConfigurationFile?, environment: [String: String]) {
        self.problems = file?.problems ?? []
        var assignments = file?.values ?? [:]
        if let file { self.sources.byPath = file.lines.mapValues { .file(file.name, line: $0) } }
        for key in ConfigurationTable.keys {
            do throws(ConfigurationProblems) {
                guard let (text, variable) = try Self.text(of: key, in: environment) else { continue }
                assignments[key.path] = key.assignment(of: text)
                self.sources.byPath[key.path] = .variable(variable)
            } catch {
                self.problems += error.problems
            }
        }
        let known = Self.clientVariables.union(ConfigurationTable.keys.flatMap(\.variables))
        for name in environment.keys.sorted() where name.hasPrefix("GATEWAY_") && !known.contains(name) {
            let message = "is not known\(NearestName.hint(for: name, among: known))"
            self.problems.append(ConfigurationProblem(place: .variable(name), message: message))
        }
        for key in ConfigurationTable.keys {
            for message in assignments[key.path]?(&self.values) ?? [] {
                self.problems.append(
                    self.sources.locate(ConfigurationProblem(place: .unknown, key: key.path, message: message))
                )
            }
        }
        self.problems += self.values.problems.map(self.sources.locate)
    }

    /// A key's variable with its text, of a secret also from the file that a variable names; nil when none is set.
    private static func text(
        of key: ConfigurationKey,
        in environment: [String: String]
    ) throws(ConfigurationProblems) -> (text: String, variable: String)? {
        guard key.isSecret else { return environment[key.variable].map { ($0, key.variable) } }
        return try SecretVariable.find(key.variable, in: environment).map { ($0.value.revealed, $0.variable) }
    }

    /// The configuration in force; throws everything wrong with the file, the environment and the values, by place.
    package func configuration() throws(ConfigurationProblems) -> GatewayConfiguration {
        guard self.problems.isEmpty else { throw ConfigurationProblems(self.problems) }
        return self.values
    }

    /// The values in force, one row a key, secrets masked.
    package func describe() -> [Row] {
        ConfigurationTable.keys.map { key in
            Row(key: key, value: key.shown(self.values), source: self.sources[key.path])
        }
    }
}
