/// Where a value of the configuration comes from.
package enum ConfigurationSource: Sendable, Equatable, CustomStringConvertible {
    /// The default; of a problem also: not known yet.
    case builtIn
    /// A file, and the line where there is one, from 1.
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

/// One thing that is wrong with the configuration.
package struct ConfigurationProblem: Sendable, Equatable {
    package var source: ConfigurationSource
    /// The key's path; nil when the problem is the whole file's or no key's.
    package var key: String?
    /// Another key that takes part; the problem is shown there when only that one was set.
    package var otherKey: String?
    /// What is wrong; never holds a secret.
    package var message: String

    package init(
        _ source: ConfigurationSource = .builtIn,
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

/// Everything that is wrong with the configuration, in the order it is printed; never empty.
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

/// Finds the name somebody probably meant.
package enum NearestName {
    /// The end of a message about an unknown name: `; did you mean …?`, or nothing when no candidate is close.
    package static func hint(for name: String, among candidates: some Sequence<String>) -> String {
        self.find(name, among: candidates).map { "; did you mean \($0)?" } ?? ""
    }

    /// The candidate with the fewest edits, at most a third of the name's length; ties go to the first in order.
    static func find(_ name: String, among candidates: some Sequence<String>) -> String? {
        let length = name.count
        let allowed = max(2, length / 3)
        let best = candidates.sorted()
            // The lengths alone are that far apart; a name of a megabyte would be compared for half a minute.
            .filter { abs($0.count - length) <= allowed }
            .map { (candidate: $0, distance: Self.distance(name, $0)) }
            .min { $0.distance < $1.distance }
        guard let best, best.distance <= allowed else { return nil }
        return best.candidate
    }

    private static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left)
        let right = Array(right)
        var previous = Array(0...right.count)
        for (row, character) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                let replaced = previous[column] + (character == other ? 0 : 1)
                current.append(min(replaced, previous[column + 1] + 1, current[column] + 1))
            }
            previous = current
        }
        return previous[right.count]
    }
}
