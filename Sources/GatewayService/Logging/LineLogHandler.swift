import Foundation
import GatewayHTTP
package import Logging

extension LogConfiguration {
    /// Makes the logger of the whole process as configured; what it was told last is written with ``Logger/flush()``.
    ///
    /// Where a reload may change levels, they are given.
    package func bootstrap(_ levels: LogLevelSetting? = nil) -> Logger {
        let format = self.lineFormat(environment: ProcessInfo.processInfo.environment, isTerminal: isatty(2) == 1)
        let clock = LogClock()
        let output = LogOutput(.standardError) { lost in
            var line = LogLine(
                format,
                time: clock.now(),
                level: .warning,
                logger: LogPart.gateway.rawValue,
                message: "Log lines were lost, since they were not read as fast as they came"
            )
            line.add(plain: "lines", lost)
            return line.finish()
        }
        let shared = LineLogHandler.Shared(
            levels: levels ?? LogLevelSetting(self),
            format: format,
            clock: clock,
            output: output
        )
        // A log whose reader has gone must not end the process.
        signal(SIGPIPE, SIG_IGN)
        LoggingSystem.bootstrap { LineLogHandler(label: $0, shared: shared) }
        return Logger(label: LogPart.gateway.rawValue)
    }

    func lineFormat(environment: [String: String], isTerminal: Bool) -> LogLine.Format {
        switch self.format {
        case .json: .json
        case .text: .text(isColoured: Terminal(isTerminal: isTerminal, environment: environment).showsColour)
        }
    }
}

/// Writes what is logged as lines, at levels that may change for all loggers at once.
///
/// Metadata given as an `Int` (`.stringConvertible(8080)`) is a number in JSON; interpolated text (`"\(port)"`) is text.
struct LineLogHandler: LogHandler {
    struct Shared: Sendable {
        let levels: LogLevelSetting
        let format: LogLine.Format
        let clock: LogClock
        let output: LogOutput
    }

    /// What the line itself says of each; metadata of these names is set apart.
    private static let ownNames: Set<String> = ["time", "level", "logger", "message"]

    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    let shared: Shared
    private let label: String
    private let part: LogPart?
    /// The level of a single logger that was given one of its own.
    private var ownLevel: Logger.Level?

    /// A handler for the logger of a name; a part's name makes it that part's.
    init(label: String, shared: Shared) {
        self.label = label
        self.part = LogPart(rawValue: label)
        self.shared = shared
    }

    func handler(for part: LogPart) -> LineLogHandler {
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
        // Its text may hold what nobody has looked at, such as an address with a token.
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
        self.shared.output.write(line.finish(), isUrgent: event.level >= .warning)
    }
}

extension Logger {
    /// The same logger for a part of the gateway, by its name and at its level.
    ///
    /// A logger that writes elsewhere, as tests have them, is every part's.
    func part(_ part: LogPart) -> Logger {
        guard let handler = self.handler as? LineLogHandler else { return self }
        return Logger(label: part.rawValue) { _ in handler.handler(for: part) }
    }

    /// Returns when everything that was logged is written, or can't be for now.
    package func flush() {
        (self.handler as? LineLogHandler)?.shared.output.flush()
    }
}

/// Writes the access log's lines as the other lines are written, without a dictionary for each.
struct LineAccessLog: AccessLogSink {
    private let shared: LineLogHandler.Shared

    /// The log beside a logger; `nil` for one that writes elsewhere.
    init?(beside logger: Logger) {
        guard let handler = logger.handler as? LineLogHandler else { return nil }
        self.init(handler.shared)
    }

    init(_ shared: LineLogHandler.Shared) {
        self.shared = shared
    }

    func write(_ entry: AccessLogEntry, at level: Logger.Level) {
        var line = LogLine(
            self.shared.format,
            time: self.shared.clock.now(),
            level: level,
            logger: LogPart.access.rawValue,
            message: entry.message
        )
        entry.forEachField { name, value in
            switch value {
            case .text(let text): line.add(plain: name, text)
            case .number(let number): line.add(plain: name, number)
            }
        }
        self.shared.output.write(line.finish(), isUrgent: level >= .warning)
    }
}
