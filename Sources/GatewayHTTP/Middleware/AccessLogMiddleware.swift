import Hummingbird
import NIOConcurrencyHelpers

/// Writes the access log's line for every request.
struct AccessLogMiddleware: RouterMiddleware {
    let log: AccessLog

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        let response = try await next(request, context)
        self.log.write(
            AccessLog.Entry(
                requestID: context.requestID,
                method: request.method.rawValue,
                route: context.route,
                status: response.status.code,
                tenant: context.parameters.get("tenant"),
                remoteAddress: context.remoteAddress,
                duration: ContinuousClock.now - context.receivedAt
            ),
            status: response.status.code,
            isShed: context.isShed.withLockedValue { $0 }
        )
        return response
    }
}
