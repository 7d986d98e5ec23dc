import EventLoopHTTP
import GatewayCore
import HTTPTypes
import Logging
import NIOCore

/// What the access log tells of a request.
package struct AccessLogEntry: Sendable {
    /// A field's value.
    package enum Value: Sendable {
        /// Text.
        case text(String)
        /// A whole number.
        case number(Int)
    }

    /// The request's id.
    var requestID: String
    /// The trace that it belongs to, if it belongs to one.
    var trace: RequestTrace?
    /// The method, `other` unless it is a common one.
    var method: String
    /// The route's template.
    var route: String
    /// The answer's status.
    var status: Int
    /// The code of a refusal.
    var code: String?
    /// Whose request it is.
    var tenant: String?
    /// The id of the key that the request carried.
    var keyID: String?
    /// The caller's address.
    var remoteAddress: String?
    /// Bytes of the request's body.
    var bytesIn: Int
    /// Bytes of the answer's body.
    var bytesOut: Int
    /// From the last byte of the request to the finished answer.
    var duration: Duration
    /// Whether the server itself refused the request, so that no route saw it.
    var isRefusal = false

    /// The line's message.
    package var message: String { self.isRefusal ? "Request refused" : "Request answered" }

    /// Calls a closure with each field that has something to tell, in the order in which people read them; the names are
    /// plain words.
    package func forEachField(_ body: (String, Value) -> Void) {
        body("method", .text(self.method))
        body("route", .text(self.route))
        body("status", .number(self.status))
        if let code = self.code { body("code", .text(code)) }
        body("duration_us", .number(Int(self.duration / .microseconds(1))))
        body("bytes_in", .number(self.bytesIn))
        body("bytes_out", .number(self.bytesOut))
        if let tenant = self.tenant { body("tenant", .text(tenant)) }
        if let keyID = self.keyID { body("key_id", .text(keyID)) }
        body("request_id", .text(self.requestID))
        if let traceID = self.trace?.traceID { body("trace_id", .text(traceID)) }
        if let spanID = self.trace?.spanID { body("span_id", .text(spanID)) }
        if let remoteAddress = self.remoteAddress { body("remote_address", .text(remoteAddress)) }
    }

    /// The fields as a logger takes them.
    var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = [:]
        self.forEachField { name, value in
            metadata[name] =
                switch value {
                case .text(let text): .string(text)
                case .number(let number): .string(String(number))
                }
        }
        return metadata
    }

    /// The same for the request's span, which knows other methods.
    func ending(_ method: String) -> RequestTrace.Ending {
        RequestTrace.Ending(
            route: self.route,
            method: method,
            status: self.status,
            code: self.code,
            tenant: self.tenant,
            requestID: self.requestID,
            remoteAddress: self.remoteAddress
        )
    }
}

extension AccessLogEntry {
    /// The line of a request that was spared the router.
    ///
    /// - Parameters:
    ///   - arrival: when it came, and its ids.
    ///   - request: the request.
    ///   - response: its answer.
    ///   - route: the route's template.
    ///   - principal: who calls, where that was found out.
    ///   - tenant: the tenant that the path names, which may be anything.
    ///   - duration: how long it took.
    init(
        _ arrival: RequestArrival,
        _ request: HTTPServerRequest,
        _ response: HTTPServerResponse,
        route: String,
        principal: Principal?,
        tenant: ArraySlice<UInt8>? = nil,
        in duration: Duration
    ) {
        self.init(
            requestID: arrival.requestID,
            trace: arrival.trace,
            method: HTTPMetrics.label(of: request.head.method.rawValue),
            route: route,
            status: response.status.code,
            code: response.code,
            tenant: principal?.profile.id.text
                ?? tenant.flatMap { TenantID(String(decoding: $0, as: UTF8.self)) }?.text,
            keyID: principal?.key.id,
            remoteAddress: request.connection.remoteAddress,
            bytesIn: request.body.readableBytes,
            bytesOut: response.body.readableBytes,
            duration: duration
        )
    }
}
