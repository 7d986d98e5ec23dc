import GatewayCore
package import Logging

/// The line that is written for every request.
///
/// Requests are logged at `info`, those that the gateway failed at `warning`. Paths are logged as templates, and a tenant
/// only by a name that one can have, so that no token in a path reaches the log.
package struct AccessLog: Sendable {
    private let logger: Logger
    private let sink: (any AccessLogSink)?

    /// A log.
    ///
    /// - Parameters:
    ///   - logger: decides what is written, and writes it where there is no sink.
    ///   - sink: writes lines more cheaply than a logger can, if given.
    package init(logger: Logger, sink: (any AccessLogSink)? = nil) {
        self.logger = logger
        self.sink = sink
    }

    /// Writes a request's line.
    ///
    /// - Parameters:
    ///   - entry: what is told, made only if it is.
    ///   - status: the answer's status.
    ///   - isShed: whether the request was refused under load: logging each of those would be a load of its own, so that
    ///     they are logged at `debug`.
    ///   - isExpected: whether a status of 500 or more is no failure.
    func write(
        _ entry: @autoclosure () -> AccessLogEntry,
        status: Int,
        isShed: Bool = false,
        isExpected: Bool = false
    ) {
        let level: Logger.Level = isShed ? .debug : status < 500 || isExpected ? .info : .warning
        guard self.logger.logLevel <= level else { return }
        self.write(entry(), at: level)
    }

    @inline(never)  // So that it takes no room where nothing is written.
    private func write(_ entry: AccessLogEntry, at level: Logger.Level) {
        if let sink = self.sink {
            sink.write(entry, at: level)
        } else {
            self.logger.log(level: level, "\(entry.message)", metadata: entry.metadata)
        }
    }
}
