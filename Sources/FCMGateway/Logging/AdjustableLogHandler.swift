import Logging

/// Logs by another handler at a level that may change for all loggers at once.
struct AdjustableLogHandler<Wrapped: LogHandler>: LogHandler {
    private var wrapped: Wrapped
    private let level: LogLevelSetting
    /// The level of a single logger that was given one of its own.
    private var ownLevel: Logger.Level?

    init(_ wrapped: Wrapped, level: LogLevelSetting) {
        self.wrapped = wrapped
        self.level = level
    }

    var logLevel: Logger.Level {
        get { self.ownLevel ?? self.level.current }
        set { self.ownLevel = newValue }
    }

    var metadata: Logger.Metadata {
        get { self.wrapped.metadata }
        set { self.wrapped.metadata = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { self.wrapped.metadataProvider }
        set { self.wrapped.metadataProvider = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.wrapped[metadataKey: key] }
        set { self.wrapped[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        self.wrapped.log(event: event)
    }
}
