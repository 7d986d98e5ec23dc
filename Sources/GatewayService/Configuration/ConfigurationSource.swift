/// Where a value in force comes from.
package enum ConfigurationSource: Sendable, Equatable {
    /// The built-in default.
    case builtIn
    /// The file, at a line from 1.
    case file(String, line: Int?)
    /// The environment, by the variable's name.
    case variable(String)
}

extension ConfigurationSource: CustomStringConvertible {
    /// `default`, `file:line` or the variable's name.
    package var description: String {
        switch self {
        case .builtIn: "default"
        case .file(let name, let line): line.map { "\(name):\($0)" } ?? name
        case .variable(let name): name
        }
    }
}
