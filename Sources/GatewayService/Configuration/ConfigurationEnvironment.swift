/// The `GATEWAY_…` variables that set keys, with secrets read from their files.
struct ConfigurationEnvironment {
    /// The variables the command line's own verbs read; they configure no server.
    static let clientVariables: Set<String> = [
        "GATEWAY_URL", "GATEWAY_KEY", "GATEWAY_KEY_FILE", "GATEWAY_ADMIN_URL", "GATEWAY_ADMIN_TOKEN",
        "GATEWAY_ADMIN_TOKEN_FILE",
    ]

    /// The values by the key's own variable.
    private(set) var values: [String: String] = [:]

    /// The variable each key was set by, by path.
    private(set) var variables: [String: String] = [:]

    /// Everything wrong with the environment.
    private(set) var problems: [ConfigurationProblem] = []

    /// Takes the known variables and refuses the unknown.
    init(_ environment: [String: String]) {
        for key in ConfigurationSchema.keys {
            let name = ConfigurationKey.environmentName(key.path)
            if key.isSecret {
                do {
                    guard let found = try SecretVariable.find(name, in: environment) else { continue }
                    self.values[name] = found.value.revealed
                    self.variables[key.path] = found.variable
                } catch {
                    self.problems += error.problems
                }
            } else if let value = environment[name] {
                self.values[name] = value
                self.variables[key.path] = name
            }
        }
        let known = ConfigurationSchema.variables.union(Self.clientVariables)
        for name in environment.keys.sorted() where name.hasPrefix("GATEWAY_") && !known.contains(name) {
            let hint = NearestName.find(name, among: known).map { "; did you mean \($0)?" } ?? ""
            self.problems.append(ConfigurationProblem(place: .variable(name), message: "is not known\(hint)"))
        }
    }
}
