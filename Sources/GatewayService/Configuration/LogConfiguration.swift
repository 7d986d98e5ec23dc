/// What is logged, and how a line looks.
package struct LogConfiguration: Sendable, Equatable {
    /// The least severe level that is logged.
    package enum Level: String, Sendable, CaseIterable {
        /// Everything, for following one request through the code.
        case trace
        /// What helps to find a fault.
        case debug
        /// What an operator may want to know.
        case info
        /// What is unusual and handled.
        case notice
        /// What may need attention.
        case warning
        /// What failed.
        case error
        /// What needs attention now.
        case critical
    }

    /// The form of a line.
    package enum Format: String, Sendable, CaseIterable {
        /// One JSON object a line, for collectors.
        case json
        /// Plain text, for people.
        case text
    }

    /// The least severe level that is logged.
    package var level: Level

    /// The levels of parts that have one of their own.
    package var levels: [LogPart: Level]

    /// The form of a line.
    package var format: Format

    /// Creates the section; what is not named has its default.
    package init(level: Level = .info, levels: [LogPart: Level] = [:], format: Format = .json) {
        self.level = level
        self.levels = levels
        self.format = format
    }
}
