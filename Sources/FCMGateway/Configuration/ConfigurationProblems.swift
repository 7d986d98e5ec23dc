/// Everything that is wrong with the configuration.
struct ConfigurationProblems: Error, Sendable, Equatable {
    /// The problems, in the order they are printed; never empty.
    let problems: [ConfigurationProblem]

    /// Gathers problems.
    init(_ problems: [ConfigurationProblem]) {
        precondition(!problems.isEmpty, "an error without a problem")
        self.problems = problems
    }
}

extension ConfigurationProblems: CustomStringConvertible {
    /// One problem a line.
    var description: String {
        self.problems.map(\.description).joined(separator: "\n")
    }
}
