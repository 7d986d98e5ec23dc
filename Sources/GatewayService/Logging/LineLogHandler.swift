import Foundation
import GatewayHTTP
package import Logging
import StrictJSON

extension LogConfiguration {
    /// Creates the logger of the whole process as configured. ``Logger/flush()`` writes the logger's last lines.
    ///
    /// Pass in the levels if a reload may change them.
    package func bootstrap(_ levels: LogLevelSetting? = nil) -> Logger {
        let format = self.lineFormat(environment: ProcessInfo.processInfo.environment, isTerminal: isatty(2) == 1)
        let clock = LogClock()
        let output = LogOutput(.standardError) { lost in
            var line = LogLine(
                format,
                time: clock.now(),
                level: .warning,
                logger: Part.gateway.rawValue,
                message: "Log lines were lost: their reader was too slow"
            )
            line.add(plain: "lines", lost)
            return line.finish().buffer
        }
        let shared = LineLogHandler.Shared(
            levels: levels ?? LogLevelSetting(self),
            format: format,
            clock: clock,
            output: output
        )
        // A log without a reader must not end the process.
        signal(SIGPIPE, SIG_IGN)
        LoggingSystem.bootstrap { LineLogHandler(label: $0, shared: shared) }
        return Logger(label: Part.gateway.rawValue)
    }

    func lineFormat(environment: [String: String], isTerminal: Bool) -> LogLine.Format {
        switch self.format {
        case .json: .json
        case .text: .text(isColoured: Terminal(isTerminal: isTerminal, environment: environment).showsColour)
        }
    }
}

/// Writes log events as lines, at levels that may change for all loggers at once.
///
/// Metadata given as an `Int` (`.stringConvertible(8080)`) is a number in JSON. Interpolated text (`"\(port)"`) is a
/// string.
struct LineLogHandler: LogHandler {
    struct Shared: Sendable {
        let levels: LogLevelSetting
        let format: LogLine.Format
        let clock: LogClock
        let output: LogOutput
    }

    /// The names of the line's own fields. Metadata with one of these names is renamed.
    private static let ownNames: Set<String> = ["time", "level", "logger", "message"]

    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    let shared: Shared
    private let label: String
    private let part: LogConfiguration.Part?
    /// The level of a single logger, if that logger has its own level.
    private var ownLevel: Logger.Level?

    /// Creates a handler for a logger's name. A part's name gives the handler that part's level.
    init(label: String, shared: Shared) {
        self.label = label
        self.part = LogConfiguration.Part(rawValue: label)
        self.shared = shared
    }

    func handler(for part: LogConfiguration.Part) -> LineLogHandler {
        var handler = LineLogHandler(label: part.rawValue, shared: self.shared)
        handler.metadata = self.metadata
        handler.metadataProvider = self.metadataProvider
        handler.ownLevel = self.ownLevel
        return handler
    }

    var logLevel: Logger.Level {
        get { self.ownLevel ?? self.part.map { self.shared.levels.current(for: $0) } ?? self.shared.levels.current }
        set { self.ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields = self.metadata
        if let provided = self.metadataProvider?.get() { fields.merge(provided) { $1 } }
        if let own = event.metadata { fields.merge(own) { $1 } }
        // An error's text is unchecked, so it may hold an address with a token.
        if let error = event.error, fields["error"] == nil { fields["error"] = "\(type(of: error))" }
        var line = LogLine(
            self.shared.format,
            time: self.shared.clock.now(),
            level: event.level,
            logger: self.label,
            message: event.message.description
        )
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            let name = Self.ownNames.contains(name) ? "metadata_\(name)" : name
            if case .stringConvertible(let value) = value, let number = value as? Int {
                line.add(name, number)
            } else {
                line.add(name, "\(value)")
            }
        }
        line.finish().withBytes { self.shared.output.write($0, isUrgent: event.level >= .warning) }
    }
}

extension Logger {
    /// The logger for a part of the gateway, with the part's name and level.
    ///
    /// A logger with another handler, as in tests, is returned unchanged.
    func part(_ part: LogConfiguration.Part) -> Logger {
        guard let handler = self.handler as? LineLogHandler else { return self }
        return Logger(label: part.rawValue) { _ in handler.handler(for: part) }
    }

    /// Waits until all earlier lines are written, but no longer than the output's timeout.
    package func flush() {
        (self.handler as? LineLogHandler)?.shared.output.flush()
    }
}

/// Writes the access log's lines like all others, but without a dictionary for each.
struct LineAccessLog: AccessLogSink {
    private let shared: LineLogHandler.Shared

    /// Shares a logger's output. Returns `nil` for a logger with another handler.
    init?(beside logger: Logger) {
        guard let handler = logger.handler as? LineLogHandler else { return nil }
        self.init(handler.shared)
    }

    init(_ shared: LineLogHandler.Shared) {
        self.shared = shared
    }

    func write(_ entry: AccessLog.Entry, at level: Logger.Level) {
        var line = LogLine(
            self.shared.format,
            time: self.shared.clock.now(),
            level: level,
            logger: LogConfiguration.Part.access.rawValue,
            message: entry.message
        )
        entry.forEachField { name, value in
            switch value {
            case .text(let text): line.add(plain: name, text)
            case .number(let number): line.add(plain: name, number)
            }
        }
        line.finish().withBytes { self.shared.output.write($0, isUrgent: level >= .warning) }
    }
}
