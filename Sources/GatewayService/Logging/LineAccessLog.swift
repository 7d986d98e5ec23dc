import GatewayHTTP
import Logging

/// Writes the access log's lines as the other lines are written, without a dictionary for each.
struct LineAccessLog: AccessLogSink {
    private let shared: LineLogHandler.Shared

    /// The log beside a logger; `nil` for one that writes elsewhere.
    init?(beside logger: Logger) {
        guard let handler = logger.handler as? LineLogHandler else { return nil }
        self.init(handler.shared)
    }

    /// A log that shares a handler's output.
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
