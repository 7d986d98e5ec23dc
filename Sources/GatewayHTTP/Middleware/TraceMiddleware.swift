import GatewayCore
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers

/// Finds out to which trace a request belongs (W3C Trace Context), and ends its span with the answer.
struct TraceMiddleware: RouterMiddleware {
    let tracer: RequestTracer

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        guard let trace = self.tracer.trace(of: request) else { return try await next(request, context) }
        var context = context
        context.trace = trace
        var status = HTTPResponse.Status.internalServerError
        defer { trace.end(context.ending(request, status: status)) }
        let response = try await next(request, context)
        status = response.status
        return response
    }
}

extension GatewayRequestContext {
    /// How the request ended, for its span.
    fileprivate func ending(_ request: Request, status: HTTPResponse.Status) -> RequestTrace.Ending {
        let notes = self.notes.withLockedValue { $0 }
        return RequestTrace.Ending(
            route: self.template,
            method: request.method.rawValue,
            status: status.code,
            code: notes.code,
            tenant: self.tenantName,
            requestID: self.requestID,
            remoteAddress: self.remoteAddress
        )
    }
}
