import EventLoopHTTP
import GatewayCore
import HTTPTypes
package import Logging
import NIOCore

/// The line that is logged for every request.
///
/// Requests are logged at `info`, the gateway's failures at `warning`, probes at `debug`. A path is
/// logged as its template, and a tenant only if its name is valid. So no token in a path reaches the log.
///
/// It is a class because every request would copy a struct's properties.
package final class AccessLog: Sendable {
    private let logger: Logger
    private let sink: (any AccessLogSink)?

    package init(logger: Logger, sink: (any AccessLogSink)? = nil) {
        self.logger = logger
        self.sink = sink
    }

    /// Writes a line. Shed requests and probes are quiet: they are logged at `debug` whatever their status, because a
    /// line for each would be a load of its own.
    func write(_ entry: @autoclosure () -> Entry, status: Int, isQuiet: Bool = false) {
        let level: Logger.Level = isQuiet ? .debug : status < 500 ? .info : .warning
        guard self.logger.logLevel <= level else { return }
        self.write(entry(), at: level)
    }

    @inline(never)  // Keeps the frame small.
    private func write(_ entry: Entry, at level: Logger.Level) {
        if let sink = self.sink {
            sink.write(entry, at: level)
        } else {
            self.logger.log(level: level, "\(entry.message)", metadata: entry.metadata)
        }
    }
}

/// Writes the access log's lines instead of a logger, which would be too costly: it creates a dictionary per line.
package protocol AccessLogSink: Sendable {
    /// Writes one line; the caller has checked that its level is logged.
    func write(_ entry: AccessLog.Entry, at level: Logger.Level)
}

extension AccessLog {
    /// The access log's facts about a request.
    package struct Entry: Sendable {
        /// The value of a field.
        package enum Value: Sendable {
            case text(String)
            case number(Int)
        }

        var requestID: String
        var trace: RequestTrace?
        /// The method; `other` for an uncommon one.
        var method: String
        /// The route's template; `nil` for an unknown address.
        var route: String?
        var status: Int
        var code: String?
        var tenant: String?
        var keyID: String?
        var remoteAddress: String?
        var bytesIn: Int
        var bytesOut: Int
        /// The time from the last byte of the request to the finished answer.
        var duration: Duration
        /// True if the server itself refused the request before any route saw it.
        var isRefusal = false

        package var message: String { self.isRefusal ? "Request refused" : "Request answered" }

        /// Calls a closure with each field that has a value, in the order of a log line. Names need no escaping.
        package func forEachField(_ body: (StaticString, Value) -> Void) {
            body("method", .text(self.method))
            body("route", .text(self.route ?? "none"))
            body("status", .number(self.status))
            if let code = self.code { body("code", .text(code)) }
            body("duration_us", .number(Int(self.duration.microseconds)))
            body("bytes_in", .number(self.bytesIn))
            body("bytes_out", .number(self.bytesOut))
            if let tenant = self.tenant { body("tenant", .text(tenant)) }
            if let keyID = self.keyID { body("key_id", .text(keyID)) }
            body("request_id", .text(self.requestID))
            if let traceID = self.trace?.traceID { body("trace_id", .text(traceID)) }
            if let spanID = self.trace?.spanID { body("span_id", .text(spanID)) }
            if let remoteAddress = self.remoteAddress { body("remote_address", .text(remoteAddress)) }
        }

        var metadata: Logger.Metadata {
            var metadata: Logger.Metadata = [:]
            self.forEachField { name, value in
                metadata[name.description] =
                    switch value {
                    case .text(let text): .string(text)
                    case .number(let number): .stringConvertible(number)
                    }
            }
            return metadata
        }

        /// Ends the request's span with the same facts; a span has the method as sent.
        func end(_ trace: RequestTrace, _ request: HTTPServerRequest) {
            trace.end(
                request.head.method.rawValue,
                at: self.route,
                scheme: request.connection.isTLS ? "https" : "http",
                status: self.status,
                code: self.code,
                tenant: self.tenant,
                requestID: self.requestID,
                remoteAddress: self.remoteAddress,
                after: self.duration
            )
        }
    }
}

extension AccessLog.Entry {
    /// The line of a request that the pipeline answered. Not an initialiser, because initialisers copy their arguments.
    static func line(
        _ exchange: Exchange,
        _ response: HTTPServerResponse.Summary,
        _ route: Route?,
        in duration: Duration
    ) -> AccessLog.Entry {
        let request = exchange.request
        return AccessLog.Entry(
            requestID: exchange.requestID,
            trace: exchange.trace,
            method: HTTPMetrics.label(of: request.head.method.rawValue),
            route: route?.template,
            status: response.status,
            code: response.code,
            tenant: exchange.tenantName,
            keyID: exchange.principal?.key.id,
            remoteAddress: request.connection.remoteAddress,
            bytesIn: request.body.readableBytes,
            bytesOut: response.bytesOut,
            duration: duration
        )
    }
}

extension HTTPServerResponse {
    typealias Summary = (status: Int, code: String?, bytesOut: Int)

    /// The logged parts of an answer. Passing these avoids a copy of the whole answer.
    var summary: Summary { (self.status.code, self.code, self.body.readableBytes) }
}

extension Exchange {
    /// The tenant that sent the request, or the tenant named in its path. Only a valid name is returned, so that no other
    /// text of a path reaches the log.
    fileprivate var tenantName: String? {
        if let principal = self.principal { return principal.profile.id.text }
        return self.parameters["tenant"].flatMap { TenantID(String(decoding: $0, as: UTF8.self)) }?.text
    }
}
