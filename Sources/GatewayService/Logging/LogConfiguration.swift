package import Logging

/// The section `log`: what is logged, and how a line looks.
package struct LogConfiguration: Sendable, Equatable {
    /// The form of a line.
    package enum Format: String, Sendable, CaseIterable {
        /// One JSON object a line, for collectors.
        case json
        /// Plain text, for people.
        case text
    }

    /// The least severe level that is logged.
    package var level: Logger.Level
    /// The levels of parts that have one of their own.
    package var levels: [LogPart: Logger.Level]
    package var format: Format

    package init(level: Logger.Level = .info, levels: [LogPart: Logger.Level] = [:], format: Format = .json) {
        self.level = level
        self.levels = levels
        self.format = format
    }
}

/// The parts of the gateway that are logged at levels of their own; each is also the name of its logger.
package enum LogPart: String, Sendable, CaseIterable {
    /// One line for every request.
    case access
    /// The listeners: connections, certificates, keys that are refused, requests that can't be served.
    case http
    /// Calls to FCM, and the access tokens for them.
    case upstream
    /// The audit trail.
    case audit
    /// What else is kept: retired tokens, idempotency keys, the levels of rate limits.
    case state
    /// Start, stop, reloads, and whatever belongs to no other part.
    case gateway
}
