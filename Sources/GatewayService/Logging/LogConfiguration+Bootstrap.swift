import Foundation
package import Logging

extension LogConfiguration {
    /// Makes the logger of the whole process as configured; what it was told last is written with ``Logger/flush()``.
    ///
    /// - Parameter levels: the levels in force, for one who changes them later.
    /// - Returns: the logger.
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

    /// How lines look: in colour where the commands' output would be.
    func lineFormat(environment: [String: String], isTerminal: Bool) -> LogLineFormat {
        switch self.format {
        case .json: .json
        case .text:
            .text(isColoured: Terminal(isTerminal: isTerminal, environment: environment).showsColour)
        }
    }
}
