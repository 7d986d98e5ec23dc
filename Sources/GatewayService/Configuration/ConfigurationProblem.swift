/// One thing that is wrong with the configuration.
package struct ConfigurationProblem: Sendable, Equatable {
    /// Where the value comes from.
    package enum Place: Sendable, Equatable {
        /// A file, and the line where there is one, from 1.
        case file(String, line: Int?)
        /// An environment variable.
        case variable(String)
        /// Not known yet, or a default.
        case unknown
    }

    package var place: Place
    /// The key's path; nil when the problem is the whole file's or no key's.
    package var key: String?
    /// Another key that takes part; the problem is shown there when only that one was set.
    package var otherKey: String?
    /// What is wrong; never holds a secret.
    package var message: String

    package init(place: Place, key: String? = nil, otherKey: String? = nil, message: String) {
        self.place = place
        self.key = key
        self.otherKey = otherKey
        self.message = message
    }
}

extension ConfigurationProblem: CustomStringConvertible {
    /// The problem on one line: `file:line: key: message` or `GATEWAY_X: message`.
    package var description: String {
        var parts: [String] = []
        switch self.place {
        case .file(let name, let line):
            parts.append(line.map { "\(name):\($0)" } ?? name)
            if let key = self.key { parts.append(key) }
        case .variable(let name):
            parts.append(name)
        case .unknown:
            if let key = self.key { parts.append(key) }
        }
        return (parts + [self.message]).joined(separator: ": ")
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
    /// One problem a line.
    package var description: String {
        self.problems.map(\.description).joined(separator: "\n")
    }
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

    /// The Levenshtein distance: insertions, deletions and replacements of one character.
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
