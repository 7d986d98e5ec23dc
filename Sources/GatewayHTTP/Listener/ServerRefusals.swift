package import EventLoopHTTP
import FCMModel
import NIOCore

/// Puts the server's own refusals into the gateway's words.
package struct ServerRefusals: Sendable {
    private let metrics: HTTPMetrics

    /// Refusals that are counted here.
    package init(metrics: HTTPMetrics) {
        self.metrics = metrics
    }

    /// The answer to a request that never reached a route.
    package func response(to refusal: HTTPServerRefusal) -> HTTPServerResponse {
        let code: OutcomeCode =
            switch refusal {
            case .badRequest, .unsupportedTransferEncoding, .httpVersionNotSupported, .expectationFailed: .badRequest
            case .uriTooLong: .uriTooLong
            case .headerTooLarge: .headerTooLarge
            case .bodyTooLarge: .bodyTooLarge
            case .headTimeout, .bodyTimeout: .requestTimeout
            case .tooManyConnections: .overloaded
            }
        self.metrics.rejected(reason: code.rawValue)
        var problem = Problem(code, refusal.reason)
        // The protocol's own faults have statuses of their own beside the common 400.
        problem.ownStatus = refusal.status
        return problem.response
    }
}
