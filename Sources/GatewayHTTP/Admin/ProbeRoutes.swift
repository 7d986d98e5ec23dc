import EventLoopHTTP
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Answers liveness and readiness probes, and Prometheus.
///
/// These requests carry no token. The answers hold no secrets; at most they name tenants.
struct ProbeRoutes {
    /// The reason why the gateway should get no traffic.
    let refusal: @Sendable () -> Readiness.Refusal?
    let exposition: MetricsExposition

    var endpoints: [any Endpoint] {
        func probe(_ path: String, _ answer: @escaping @Sendable () -> HTTPServerResponse) -> any Endpoint {
            Handler(open: Route(.get, path).with(\.isProbe, true)) { _ in answer() }
        }
        return [
            probe("/livez") { Self.response(failure: nil) },
            probe("/readyz") { Self.response(failure: self.refusal()?.rawValue) },
            probe("/metrics") {
                HTTPServerResponse(
                    status: .ok,
                    headers: [.contentType: self.exposition.contentType],
                    body: ByteBuffer(bytes: self.exposition.render())
                )
            },
        ]
    }

    /// The answer as `application/health+json`, whose member for the reason is `output`.
    private static func response(failure: String?) -> HTTPServerResponse {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("status", failure == nil ? "pass" : "fail")
        if let failure { writer.member("output", failure) }
        writer.endObject()
        return HTTPServerResponse(
            status: failure == nil ? .ok : .serviceUnavailable,
            headers: [.contentType: "application/health+json", .cacheControl: "no-store"],
            body: writer.finish()
        )
    }
}

/// Renders all metrics.
package struct MetricsExposition: Sendable {
    package let contentType: String
    package let render: @Sendable () -> [UInt8]

    package init(contentType: String, render: @escaping @Sendable () -> [UInt8]) {
        self.contentType = contentType
        self.render = render
    }
}
