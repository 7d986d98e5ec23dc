import EventLoopHTTP
import Hummingbird
import NIOConcurrencyHelpers

/// Turns everything that is thrown behind it into problem details.
struct ProblemMiddleware: RouterMiddleware {
    let rendering: ProblemRendering

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch {
            let answer = self.rendering.response(
                for: error,
                path: request.uri.path,
                requestID: context.requestID,
                trace: context.trace
            )
            return context.answering(answer)
        }
    }
}
