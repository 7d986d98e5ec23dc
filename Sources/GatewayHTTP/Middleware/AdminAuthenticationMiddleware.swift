import FCMModel
import GatewayCore
import Hummingbird

/// Lets operators in: those who carry the admin token.
struct AdminAuthenticationMiddleware: RouterMiddleware {
    let token: AdminToken
    let metrics: HTTPMetrics

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        guard let text = BearerToken.text(in: request.headers), self.token.matches(text) else {
            self.metrics.refused(result: "refused")
            throw Problem(.unauthenticated, "Send the admin token as Authorization: Bearer <token>")
        }
        self.metrics.authenticated()
        return try await next(request, context)
    }
}
