import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird
import Logging
import NIOConcurrencyHelpers

/// Finds out which tenant's key a request carries.
struct AuthenticationMiddleware: RouterMiddleware {
    let authenticator: Authenticator
    let clock: any WallClock
    let metrics: HTTPMetrics
    let logger: Logger

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        let principal = try self.principal(
            authorization: request.headers[.authorization].map { Array($0.utf8) },
            clientNames: context.clientNames,
            now: self.clock.now()
        )
        context.principal = principal
        context.notes.withLockedValue { $0.principal = principal }
        return try await next(request, context)
    }

    /// Whose key the bytes of an `Authorization` field carry, on a connection whose client has these names.
    ///
    /// - Throws: `unauthenticated`.
    func principal(authorization: [UInt8]?, clientNames: [String], now: Timestamp) throws(Refusal) -> Principal {
        let key = authorization.flatMap(BearerToken.bytes(in:))
        guard let principal = self.principal(key: key, clientNames: clientNames, now: now) else {
            // Why a key is refused would help only those who guess.
            throw Refusal(.unauthenticated, "Send a valid API key as Authorization: Bearer <key>")
        }
        return principal
    }

    /// Whose key some bytes are; `nil` for nobody's, or for one that this connection's client may not use.
    func principal(key: ArraySlice<UInt8>?, clientNames: [String], now: Timestamp) -> Principal? {
        switch self.authenticator.authenticate(key: key, clientNames: clientNames, now: now) {
        case .authenticated(let principal):
            self.metrics.authenticated()
            return principal
        case .refused(let refusal):
            self.metrics.refused(result: refusal.rawValue)
            if refusal == .certificate {
                // A stolen key, or a client that was forgotten: callers are told nothing, so operators have to be.
                self.logger.notice(
                    "A good key was refused for want of a client certificate that its tenant asks for.",
                    metadata: ["key_id": "\(key.flatMap { APIKey.id(in: $0) } ?? "")"]
                )
            }
            return nil
        }
    }
}
