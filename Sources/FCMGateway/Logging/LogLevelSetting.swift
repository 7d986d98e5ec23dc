import Logging
import Synchronization

/// The least severe level that is logged, which may change while the gateway runs.
final class LogLevelSetting: Sendable {
    private static let levels = Logger.Level.allCases
    private let index: Atomic<Int>

    init(_ configuration: LogConfiguration) {
        self.index = Atomic(Self.index(of: configuration))
    }

    /// What is in force now.
    var current: Logger.Level {
        Self.levels[self.index.load(ordering: .relaxed)]
    }

    /// Puts a configuration's level in force.
    func change(to configuration: LogConfiguration) {
        self.index.store(Self.index(of: configuration), ordering: .relaxed)
    }

    private static func index(of configuration: LogConfiguration) -> Int {
        self.levels.firstIndex { $0.rawValue == configuration.level.rawValue } ?? 0
    }
}
