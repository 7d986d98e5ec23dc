package import EventLoopHTTP
import FCMModel
import GatewayCore
import NIOCore

/// Puts the server's own refusals into the gateway's words.
package struct ServerRefusals: Sendable {
    private let metrics: HTTPMetrics
    private let gate: LoadGate?

    /// Refusals that are counted here; only a listener with a gate bounds the bodies it holds.
    package init(metrics: HTTPMetrics, gate: LoadGate? = nil) {
        self.metrics = metrics
        self.gate = gate
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
            case .tooManyConnections, .tooManyBufferedBytes: .overloaded
            }
        self.metrics.rejected(reason: code.rawValue)
        if case .tooManyBufferedBytes(let path) = refusal, let gate = self.gate {
            return gate.answer(.bufferedBytes, in: ShedWording(path: path))
        }
        var problem = Problem(code, refusal.reason)
        // The protocol's own faults have statuses of their own beside the common 400.
        problem.ownStatus = refusal.status
        return problem.response
    }
}
