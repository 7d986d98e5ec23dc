package import EventLoopHTTP
import HTTPTypes

/// Answers on the data listener: sends by the short way, everything else through the router.
package struct DataResponder: HTTPServerResponder {
    private let sending: SendRoute
    private let routed: RoutedResponder

    init(sending: SendRoute, routed: RoutedResponder) {
        self.sending = sending
        self.routed = routed
    }

    /// Answers a request.
    package func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
        if request.head.method == .post, let tenant = SendRoute.tenant(in: request.head.pathBytes) {
            return await self.sending.respond(to: request, tenant: tenant)
        }
        return await self.routed.respond(to: request)
    }
}
