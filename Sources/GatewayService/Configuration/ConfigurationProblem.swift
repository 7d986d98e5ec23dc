/// One problem of the configuration.
package struct ConfigurationProblem: Sendable, Equatable {
    /// The place where a value of the configuration was set.
    package enum Source: Sendable, Equatable, CustomStringConvertible {
        /// The built-in default. In a problem, this also means that the place is not known yet.
        case builtIn
        /// A file and, if known, a line, counted from 1.
        case file(String, line: Int?)
        case variable(String)

        /// The place as text: `default`, `file:line` or the variable's name.
        package var description: String {
            switch self {
            case .builtIn: "default"
            case .file(let name, let line): line.map { "\(name):\($0)" } ?? name
            case .variable(let name): name
            }
        }
    }

    package var source: Source
    /// The key's path. `nil` if the problem concerns the whole file, or no key.
    package var key: String?
    /// Another key that the problem involves. If only that key was set, the problem is reported at its place.
    package var otherKey: String?
    /// The problem in words. Never holds a secret.
    package var message: String

    package init(
        _ source: Source = .builtIn,
        key: String? = nil,
        otherKey: String? = nil,
        message: String
    ) {
        self.source = source
        self.key = key
        self.otherKey = otherKey
        self.message = message
    }
}

extension ConfigurationProblem: CustomStringConvertible {
    /// The problem on one line: `file:line: key: message` or `GATEWAY_X: message`.
    package var description: String {
        let source = self.source == .builtIn ? nil : self.source.description
        var key = self.key
        if case .variable = self.source { key = nil }
        return [source, key, self.message].compactMap(\.self).joined(separator: ": ")
    }
}

/// All problems of the configuration, in the order of printing. Never empty.
package struct ConfigurationProblems: Error, Sendable, Equatable {
    package let problems: [ConfigurationProblem]

    package init(_ problems: [ConfigurationProblem]) {
        precondition(!problems.isEmpty, "an error without a problem")
        self.problems = problems
    }
}

extension ConfigurationProblems: CustomStringConvertible {
    package var description: String { self.problems.map(\.description).joined(separator: "\n") }
}
