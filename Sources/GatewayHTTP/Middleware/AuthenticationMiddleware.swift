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
        var context = context
        context.principal = try self.principal(
            authorization: request.headers[.authorization].map { Array($0.utf8) },
            now: self.clock.now()
        )
        return try await next(request, context)
    }

    /// Whose key the bytes of an `Authorization` field carry.
    ///
    /// - Throws: `unauthenticated`.
    func principal(authorization: [UInt8]?, now: Timestamp) throws(Problem) -> Principal {
        guard let principal = self.principal(key: authorization.flatMap(BearerToken.bytes(in:)), now: now) else {
            // Why a key is refused would help only those who guess.
            throw Problem(.unauthenticated, "Send a valid API key as Authorization: Bearer <key>")
        }
        return principal
    }

    /// Whose key some bytes are; `nil` for nobody's.
    func principal(key: ArraySlice<UInt8>?, now: Timestamp) -> Principal? {
        switch self.authenticator.authenticate(key: key, now: now) {
        case .authenticated(let principal):
            self.metrics.authenticated()
            return principal
        case .refused(let refusal):
            self.metrics.refused(result: refusal.rawValue)
            return nil
        }
    }
}
