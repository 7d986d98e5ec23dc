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

    /// Where the value comes from.
    package var place: Place

    /// The key's path; nil when the problem is the whole file's or no key's.
    package var key: String?

    /// Another key that takes part in the problem.
    package var otherKey: String?

    /// What is wrong; never holds a secret.
    package var message: String

    /// States a problem.
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
