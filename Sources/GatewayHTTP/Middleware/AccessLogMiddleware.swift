import Hummingbird
import Logging

/// Writes a line for every request: at `debug` for those that went well, since the audit has them, else at `info`.
///
/// Paths are logged as templates, so that no token in a path reaches the log.
struct AccessLogMiddleware: RouterMiddleware {
    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        let response = try await next(request, context)
        let level: Logger.Level = response.status.code < 400 ? .debug : .info
        context.logger.log(
            level: level,
            "Request answered",
            metadata: [
                "request_id": "\(context.requestID)",
                "method": "\(request.method.rawValue)",
                "route": "\(context.endpointPath ?? "none")",
                "status": "\(response.status.code)",
                "tenant": "\(context.parameters.get("tenant") ?? "")",
                "remote_address": "\(context.remoteAddress ?? "")",
                "duration_us": "\((ContinuousClock.now - context.receivedAt) / .microseconds(1))",
            ]
        )
        return response
    }
}
