import GatewayCore
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import StrictJSON

/// Tells probes whether the process lives and whether it should get traffic.
struct HealthController {
    let readiness: Readiness

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("livez") { _, _ in Self.response(failure: nil) }
        routes.get("readyz") { _, context in
            // A balancer asks each second: that a gateway takes no traffic is no warning to be repeated.
            context.notes.withLockedValue { $0.isExpected = true }
            return Self.response(failure: self.readiness.refusal(at: .now)?.rawValue)
        }
        return routes
    }

    /// The answer in the form of `application/health+json`, which calls the reason `output`.
    private static func response(failure: String?) -> Response {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("status", failure == nil ? "pass" : "fail")
        if let failure { writer.member("output", failure) }
        writer.endObject()
        var response = Response(status: failure == nil ? .ok : .serviceUnavailable, json: writer.finish())
        response.headers[.contentType] = "application/health+json"
        response.headers[.cacheControl] = "no-store"
        return response
    }
}
