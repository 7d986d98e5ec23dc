import GatewayCore
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore

/// Writes the access log's line for every request that goes through the router.
struct AccessLogMiddleware: RouterMiddleware {
    let log: AccessLog

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        let response = try await next(request, context)
        let notes = context.notes.withLockedValue { $0 }
        self.log.write(
            AccessLogEntry(
                requestID: context.requestID,
                trace: context.trace,
                method: HTTPMetrics.label(of: request.method.rawValue),
                route: context.route,
                status: response.status.code,
                code: notes.code,
                tenant: context.tenantName,
                keyID: notes.principal?.key.id,
                remoteAddress: context.remoteAddress,
                bytesIn: context.body.readableBytes,
                bytesOut: response.body.contentLength ?? 0,
                duration: ContinuousClock.now - context.receivedAt
            ),
            status: response.status.code,
            isShed: notes.isShed,
            isExpected: notes.isExpected
        )
        return response
    }
}
