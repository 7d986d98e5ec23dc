import Configuration

/// The file and the environment brought together: environment over file over defaults.
package struct ConfigurationInput {
    /// Reads the values in force.
    let reader: ConfigReader

    private let file: ConfigurationFile?
    private let environment: ConfigurationEnvironment

    /// Reads the file and the environment; what is wrong with them comes out of `configuration()`.
    ///
    /// - Parameters:
    ///   - file: The YAML file's path; nil reads none.
    ///   - environment: The process's variables.
    package init(file: String?, environment: [String: String]) {
        self.init(file: file.map { ConfigurationFile(path: $0) }, environment: environment)
    }

    /// Brings a file that was already read and the environment together.
    init(file: ConfigurationFile?, environment: [String: String]) {
        let environment = ConfigurationEnvironment(environment)
        let defaults = ConfigurationSchema.keys.map {
            (AbsoluteConfigKey($0.components), ConfigValue($0.defaultContent, isSecret: $0.isSecret))
        }
        self.file = file
        self.environment = environment
        self.reader = ConfigReader(providers: [
            // The variable's finished name is the key's only component, which the provider takes as it is.
            EnvironmentVariablesProvider(
                environmentVariables: environment.values,
                secretsSpecifier: .specific(
                    Set(ConfigurationSchema.keys.filter(\.isSecret).map { ConfigurationKey.environmentName($0.path) })
                )
            )
            .mapKeys { AbsoluteConfigKey([ConfigurationKey.environmentName($0.components.joined(separator: "."))]) },
            InMemoryProvider(name: "file", values: file?.values ?? [:]),
            InMemoryProvider(name: "defaults", values: Dictionary(uniqueKeysWithValues: defaults)),
        ])
    }

    /// Reads and checks everything.
    ///
    /// - Returns: The configuration in force.
    /// - Throws: Everything wrong with the file, the environment and the values, each named by its place.
    package func configuration() throws(ConfigurationProblems) -> GatewayConfiguration {
        var problems = (self.file?.problems ?? []) + self.environment.problems
        do {
            let configuration = try GatewayConfiguration(reader: self.reader)
            if problems.isEmpty { return configuration }
        } catch {
            problems += error.problems.map { self.locate($0) }
        }
        throw ConfigurationProblems(problems)
    }

    /// Runs a body and says of the problems that it throws where their keys were set.
    package func locating<Value>(_ body: () throws(ConfigurationProblems) -> Value) throws(ConfigurationProblems)
        -> Value
    {
        do {
            return try body()
        } catch {
            throw ConfigurationProblems(error.problems.map { self.locate($0) })
        }
    }

    /// The values in force, one row a key, secrets masked.
    package func describe() -> [ConfigurationRow] {
        ConfigurationSchema.keys.map { key in
            ConfigurationRow(
                key: key.path,
                value: self.shown(key),
                source: self.source(key.path),
                isReloadable: key.isReloadable
            )
        }
    }

    private func source(_ path: String) -> ConfigurationSource {
        if let variable = self.environment.variables[path] {
            .variable(variable)
        } else if let file = self.file, let line = file.lines[path] {
            .file(file.name, line: line)
        } else {
            .builtIn
        }
    }

    private func locate(_ problem: ConfigurationProblem) -> ConfigurationProblem {
        var located = problem
        for path in [problem.key, problem.otherKey].compactMap(\.self) {
            switch self.source(path) {
            case .builtIn: continue
            case .file(let name, let line): located.place = .file(name, line: line)
            case .variable(let name): located.place = .variable(name)
            }
            located.key = path
            return located
        }
        return located
    }

    private func shown(_ key: ConfigurationKey) -> String {
        let path = ConfigKey(key.components)
        // Reading is checked by `configuration()`; a value that cannot be read is shown as nothing here.
        switch key.kind {
        case .text, .policies:
            return (try? self.reader.requiredString(forKey: path)) ?? ""
        case .wholeNumber:
            return (try? self.reader.requiredInt(forKey: path)).map(String.init) ?? ""
        case .textList:
            return (try? self.reader.requiredStringArray(forKey: path))?.joined(separator: ",") ?? ""
        case .secret:
            let isSet = (try? self.reader.requiredString(forKey: path, isSecret: true))?.isEmpty == false
            return isSet ? Redacted("").description : ""
        }
    }
}
