package import Logging
import Synchronization

/// The section `log`: the levels, and the form of a line.
package struct LogConfiguration: Sendable, Equatable {
    /// The parts of the gateway that have their own levels. Each part also names its logger.
    package enum Part: String, Sendable, CaseIterable {
        /// One line for every request.
        case access
        /// The listeners: connections, certificates, refused keys, failed requests.
        case http
        /// Calls to FCM, and the access tokens for them.
        case upstream
        /// The audit trail.
        case audit
        /// Other state: retired tokens, idempotency keys, the levels of rate limits.
        case state
        /// Start, stop, reloads, and whatever belongs to no other part.
        case gateway
    }

    /// One JSON object per line, for collectors, or plain text, for people.
    package enum Format: String, Sendable, CaseIterable {
        case json
        case text
    }

    package var level: Logger.Level
    package var levels: [Part: Logger.Level]
    package var format: Format

    package init(level: Logger.Level = .info, levels: [Part: Logger.Level] = [:], format: Format = .json) {
        self.level = level
        self.levels = levels
        self.format = format
    }
}

/// The minimum levels that are logged. They may change while the gateway runs.
package final class LogLevelSetting: Sendable {
    private static let levels = Logger.Level.allCases
    /// One byte for the general level, followed by one for each part. All levels change at once, and reading takes no
    /// lock.
    private let indices: Atomic<UInt64>

    init(_ configuration: LogConfiguration) {
        self.indices = Atomic(Self.indices(of: configuration))
    }

    var current: Logger.Level { self.level(at: 0) }

    func current(for part: LogConfiguration.Part) -> Logger.Level { self.level(at: Self.position(of: part)) }

    func change(to configuration: LogConfiguration) {
        self.indices.store(Self.indices(of: configuration), ordering: .relaxed)
    }

    private func level(at position: UInt64) -> Logger.Level {
        Self.levels[Int(self.indices.load(ordering: .relaxed) >> (position * 8) & 0xFF)]
    }

    private static func position(of part: LogConfiguration.Part) -> UInt64 {
        switch part {
        case .access: 1
        case .http: 2
        case .upstream: 3
        case .audit: 4
        case .state: 5
        case .gateway: 6
        }
    }

    private static func indices(of configuration: LogConfiguration) -> UInt64 {
        LogConfiguration.Part.allCases.reduce(Self.index(of: configuration.level)) { indices, part in
            indices | Self.index(of: configuration.levels[part] ?? configuration.level) << (Self.position(of: part) * 8)
        }
    }

    private static func index(of level: Logger.Level) -> UInt64 {
        guard let index = Self.levels.firstIndex(of: level) else {
            preconditionFailure("no logger knows the level \(level)")
        }
        return UInt64(index)
    }
}
