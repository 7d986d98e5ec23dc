import FCMModel
import HTTPTypes
import Hummingbird

/// Fixes when the caller stops waiting: after the gateway's own limit, or earlier where the caller says so.
struct DeadlineMiddleware: RouterMiddleware {
    let limit: Duration

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        var limit = self.limit
        if let text = request.headers[.requestTimeout] {
            guard let milliseconds = Int(text), milliseconds > 0 else {
                throw Problem(.badRequest, "X-Request-Timeout-Ms must be a whole number of at least 1")
            }
            limit = min(limit, .milliseconds(milliseconds))
        }
        context.deadline = context.receivedAt + limit
        return try await next(request, context)
    }
}
