import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird

/// Fixes when the caller stops waiting: after the gateway's own limit, or earlier where the caller says so.
struct DeadlineMiddleware: RouterMiddleware {
    let limit: DurationSetting

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        context.deadline =
            context.receivedAt + (try Self.timeout(given: request.headers[.requestTimeout], limit: self.limit.current))
        return try await next(request, context)
    }

    /// How long the caller waits.
    ///
    /// - Throws: `bad_request` for a header that is no number of milliseconds.
    static func timeout(given text: String?, limit: Duration) throws(Refusal) -> Duration {
        guard let text else { return limit }
        guard let milliseconds = Int(digits: text), milliseconds > 0 else {
            throw Refusal(.badRequest, "X-Request-Timeout-Ms must be a whole number of at least 1")
        }
        return min(limit, .milliseconds(milliseconds))
    }
}
