import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird
import Logging

/// Turns everything that is thrown behind it into problem details.
struct ProblemMiddleware: RouterMiddleware {
    let routes: RouteTable

    func handle(
        _ request: Request,
        context: GatewayRequestContext,
        next: @concurrent (Request, GatewayRequestContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as Problem {
            return Response(problem.response)
        } catch let error as GatewayError {
            self.log(error, context)
            return Response(Problem(error).response)
        } catch let error as HTTPError where error.status == .notFound {
            return Response(self.unserved(request).response)
        } catch {
            context.logger.error(
                "A request failed unexpectedly",
                metadata: ["request_id": "\(context.requestID)", "error": "\(type(of: error))"]
            )
            return Response(Problem(.internalError).response)
        }
    }

    private func unserved(_ request: Request) -> Problem {
        let methods = self.routes.methods(at: request.uri.path)
        guard !methods.isEmpty else { return Problem(.notFound, "There is no such route") }
        var problem = Problem(.methodNotAllowed, "Use \(methods.joined(separator: " or ")) here")
        problem.allowedMethods = methods
        return problem
    }

    private func log(_ error: GatewayError, _ context: GatewayRequestContext) {
        guard error.cause != nil else { return }
        context.logger.warning(
            "A request could not be served",
            metadata: [
                "request_id": "\(context.requestID)",
                "code": "\(error.code.rawValue)",
                "reason": "\(error.message)",
            ]
        )
    }
}
