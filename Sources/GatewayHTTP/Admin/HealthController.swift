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
        routes.get("livez") { _, _ in Self.response(isPassing: true) }
        routes.get("readyz") { _, context in
            // A balancer asks each second: that a gateway drains is no warning to be repeated.
            context.notes.withLockedValue { $0.isExpected = true }
            return Self.response(isPassing: self.readiness.isReady)
        }
        return routes
    }

    private static func response(isPassing: Bool) -> Response {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("status", isPassing ? "pass" : "fail")
        writer.endObject()
        var response = Response(status: isPassing ? .ok : .serviceUnavailable, json: writer.finish())
        response.headers[.contentType] = "application/health+json"
        response.headers[.cacheControl] = "no-store"
        return response
    }
}
