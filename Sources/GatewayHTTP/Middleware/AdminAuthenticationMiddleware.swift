import FCMModel
import GatewayCore
import Hummingbird

/// Lets operators in: those who carry the admin token.
///
/// A wrong one is answered after a pause; an API key, which is no guess at it, at once. A connection serves one request at
/// a time, and the admin listener has few of them: that bounds both the guesses in a second and the memory that waiting
/// takes, and locks nobody out who has the token.
struct AdminAuthenticationMiddleware: RouterMiddleware {
    let token: AdminToken
    let metrics: HTTPMetrics
    /// Waits before a wrong token is answered.
    let pause: @Sendable () async -> Void

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        let given = request.headers[.authorization].flatMap { BearerToken.bytes(in: Array($0.utf8)) }
        guard let token = given, self.token.matches(token) else {
            self.metrics.refused(result: "refused")
            if let given, APIKey.id(in: given[...]) == nil { await self.pause() }
            throw Refusal(.unauthenticated, "Send the admin token as Authorization: Bearer <token>")
        }
        self.metrics.authenticated()
        return try await next(request, context)
    }
}
