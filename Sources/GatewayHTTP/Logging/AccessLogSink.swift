package import Logging

/// Writes the access log's lines where a logger would cost too much: it would make a dictionary of every line.
package protocol AccessLogSink: Sendable {
    /// Writes one line; that its level is logged is known.
    func write(_ entry: AccessLogEntry, at level: Logger.Level)
}
