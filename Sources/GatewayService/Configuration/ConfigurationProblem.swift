/// One problem of the configuration.
package struct ConfigurationProblem: Sendable, Equatable {
    /// The place where a value of the configuration was set.
    package enum Source: Sendable, Equatable, CustomStringConvertible {
        /// The default; in a problem also: not known yet.
        case builtIn
        /// A file, with a line, from 1, if known.
        case file(String, line: Int?)
        case variable(String)

        /// `default`, `file:line` or the variable's name.
        package var description: String {
            switch self {
            case .builtIn: "default"
            case .file(let name, let line): line.map { "\(name):\($0)" } ?? name
            case .variable(let name): name
            }
        }
    }

    package var source: Source
    /// The key's path; `nil` if the problem is the whole file's or no key's.
    package var key: String?
    /// Another key involved. If only this other key was set, the problem is reported at the place of this key.
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
