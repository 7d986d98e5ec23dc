import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird

/// Finds out which tenant's key a request carries.
struct AuthenticationMiddleware: RouterMiddleware {
    let authenticator: Authenticator
    let clock: any WallClock
    let metrics: HTTPMetrics

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        let key = BearerToken.text(in: request.headers)
        switch self.authenticator.authenticate(key: key, now: self.clock.now()) {
        case .authenticated(let principal):
            self.metrics.authenticated(result: "accepted")
            var context = context
            context.principal = principal
            return try await next(request, context)
        case .refused(let refusal):
            self.metrics.authenticated(result: refusal.rawValue)
            // Why a key is refused would help only those who guess.
            throw Problem(.unauthenticated, "Send a valid API key as Authorization: Bearer <key>")
        }
    }
}
