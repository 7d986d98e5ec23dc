import HTTPTypes
import Hummingbird

/// Measures every request by its route's template, method and status.
struct MetricsMiddleware: RouterMiddleware {
    let metrics: HTTPMetrics

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        self.metrics.began()
        var status = HTTPResponse.Status.internalServerError
        defer {
            self.metrics.ended(
                route: context.route,
                method: request.method.rawValue,
                status: status.code,
                in: ContinuousClock.now - context.receivedAt
            )
        }
        let response = try await next(request, context)
        status = response.status
        return response
    }
}
