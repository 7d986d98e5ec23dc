import GatewayCore
import Logging

/// The line that is written for every request.
///
/// Requests that went well are logged at `debug`, since the audit has them; others at `info`. Paths are logged as
/// templates, and a tenant only by a name that one can have, so that no token in a path reaches the log.
struct AccessLog: Sendable {
    /// What is told of a request.
    struct Entry {
        var requestID: String
        var method: String
        var route: String
        var status: Int
        var tenant: String?
        var remoteAddress: String?
        var duration: Duration
    }

    let logger: Logger

    /// Writes a request's line.
    ///
    /// - Parameters:
    ///   - entry: what is told, made only if it is.
    ///   - status: the answer's status.
    ///   - isShed: whether the request was refused under load: logging each of those would be a load of its own.
    func write(_ entry: @autoclosure () -> Entry, status: Int, isShed: Bool = false) {
        let level: Logger.Level = status < 400 || isShed ? .debug : .info
        guard self.logger.logLevel <= level else { return }
        let entry = entry()
        self.logger.log(
            level: level,
            "Request answered",
            metadata: [
                "request_id": "\(entry.requestID)",
                "method": "\(entry.method)",
                "route": "\(entry.route)",
                "status": "\(entry.status)",
                "tenant": "\(entry.tenant.flatMap { TenantID($0) }?.text ?? "")",
                "remote_address": "\(entry.remoteAddress ?? "")",
                "duration_us": "\(entry.duration / .microseconds(1))",
            ]
        )
    }
}
