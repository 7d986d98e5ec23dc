import Tracing

/// One call to an upstream server, as its span tells of it.
package struct UpstreamAttempt: Sendable {
    /// The HTTP method.
    package var method: String
    /// The path's template: paths themselves may hold tokens.
    package var route: String
    /// The server's name or address.
    package var host: String
    /// The server's port.
    package var port: Int
    /// Whose call it is.
    package var tenant: String
    /// How often the same has been tried before.
    package var repeats: Int

    /// An attempt.
    package init(method: String, route: String, host: String, port: Int, tenant: String, repeats: Int = 0) {
        self.method = method
        self.route = route
        self.host = host
        self.port = port
        self.tenant = tenant
        self.repeats = repeats
    }

    /// Writes the attempt into a span's attributes.
    func describe(_ attributes: inout SpanAttributes) {
        attributes.set("http.request.method", value: .string(SpanMethod(self.method).attribute))
        attributes.set("url.template", value: .string(self.route))
        attributes.set("server.address", value: .string(self.host))
        attributes.set("server.port", value: .int64(Int64(self.port)))
        attributes.set("fcmgw.tenant", value: .string(self.tenant))
        guard self.repeats > 0 else { return }
        attributes.set("http.request.resend_count", value: .int64(Int64(self.repeats)))
    }
}
