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
        guard let authorization = request.headers[.authorization],
            let token = BearerToken.bytes(in: Array(authorization.utf8)), self.token.matches(token)
        else {
            self.metrics.refused(result: "refused")
            throw Problem(.unauthenticated, "Send the admin token as Authorization: Bearer <token>")
        }
        self.metrics.authenticated()
        return try await next(request, context)
    }
}
