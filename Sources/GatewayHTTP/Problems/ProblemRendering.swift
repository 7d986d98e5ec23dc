import EventLoopHTTP
import FCMModel
import GatewayCore
import Hummingbird
import Logging

/// Turns whatever a route throws into problem details.
struct ProblemRendering: Sendable {
    let routes: RouteTable
    let logger: Logger

    /// The answer to a failed request.
    ///
    /// - Parameters:
    ///   - error: what was thrown.
    ///   - path: the request's path, to name the methods that are served there.
    ///   - requestID: the request's id, for the log.
    ///   - trace: the trace that the request belongs to, for the log.
    /// - Returns: the problem as an answer.
    func response(
        for error: any Error,
        path: String,
        requestID: String,
        trace: RequestTrace?
    ) -> HTTPServerResponse {
        switch error {
        case let problem as Problem:
            return problem.response
        case let error as GatewayError:
            if error.cause != nil {
                self.logger.warning(
                    "A request could not be served",
                    metadata: Self.metadata(requestID, trace)
                        .merging(["code": "\(error.code.rawValue)", "reason": "\(error.message)"]) { $1 }
                )
            }
            return Problem(error).response
        case let error as HTTPError where error.status == .notFound:
            return self.unserved(path).response
        default:
            self.logger.error(
                "A request failed unexpectedly",
                metadata: Self.metadata(requestID, trace).merging(["error": "\(type(of: error))"]) { $1 }
            )
            return Problem(.internalError).response
        }
    }

    private static func metadata(_ requestID: String, _ trace: RequestTrace?) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["request_id": "\(requestID)"]
        if let traceID = trace?.traceID { metadata["trace_id"] = "\(traceID)" }
        if let spanID = trace?.spanID { metadata["span_id"] = "\(spanID)" }
        return metadata
    }

    private func unserved(_ path: String) -> Problem {
        let methods = self.routes.methods(at: path)
        guard !methods.isEmpty else { return Problem(.notFound, "There is no such route") }
        var problem = Problem(.methodNotAllowed, "Use \(methods.joined(separator: " or ")) here")
        problem.allowedMethods = methods
        return problem
    }
}
