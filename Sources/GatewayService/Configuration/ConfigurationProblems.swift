/// Everything that is wrong with the configuration.
package struct ConfigurationProblems: Error, Sendable, Equatable {
    /// The problems, in the order they are printed; never empty.
    package let problems: [ConfigurationProblem]

    /// Gathers problems.
    package init(_ problems: [ConfigurationProblem]) {
        precondition(!problems.isEmpty, "an error without a problem")
        self.problems = problems
    }
}

extension ConfigurationProblems: CustomStringConvertible {
    /// One problem a line.
    package var description: String {
        self.problems.map(\.description).joined(separator: "\n")
    }
}
