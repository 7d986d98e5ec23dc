package import EventLoopHTTP
import FCMModel
import GatewayCore
import NIOCore

/// Puts the server's own refusals into the gateway's words.
package struct ServerRefusals: Sendable {
    private let metrics: HTTPMetrics
    private let gate: LoadGate?
    private let log: Log?

    /// Refusals that are counted here; only a listener with a gate bounds the bodies it holds.
    package init(metrics: HTTPMetrics, gate: LoadGate? = nil, log: Log? = nil) {
        self.metrics = metrics
        self.gate = gate
        self.log = log
    }

    /// The answer to a request that never reached a route.
    package func response(to refusal: HTTPServerRefusal, _ request: HTTPRefusedRequest) -> HTTPServerResponse {
        var response = self.response(to: refusal)
        self.log?.write(&response, to: request, isShed: refusal.isUnderLoad)
        return response
    }

    private func response(to refusal: HTTPServerRefusal) -> HTTPServerResponse {
        let code: OutcomeCode =
            switch refusal {
            case .badRequest, .unsupportedTransferEncoding, .httpVersionNotSupported, .expectationFailed: .badRequest
            case .uriTooLong: .uriTooLong
            case .headerTooLarge: .headerTooLarge
            case .bodyTooLarge: .bodyTooLarge
            case .headTimeout, .bodyTimeout: .requestTimeout
            case .tooManyConnections, .tooManyBufferedBytes: .overloaded
            }
        self.metrics.rejected(reason: Self.reason(of: refusal))
        if case .tooManyBufferedBytes(let path) = refusal, let gate = self.gate {
            return gate.answer(.bufferedBytes, in: ShedWording(path: path))
        }
        // The protocol's own faults have statuses of their own beside the common 400.
        return Refusal(code, refusal.reason).response(status: refusal.status)
    }

    /// Counts a connection that the server ended without an answer.
    package func note(_ cut: HTTPServerCut) {
        let reason =
            switch cut {
            case .writeStalled: "write_stalled"
            case .flooded: "flooded"
            case .handshakeTimeout: "handshake_timeout"
            case .tooManyConnections: "too_many_connections"
            case .evicted: "evicted"
            case .outOfDescriptors: "out_of_descriptors"
            }
        self.metrics.rejected(reason: reason)
    }

    /// What a refusal is counted as.
    private static func reason(of refusal: HTTPServerRefusal) -> String {
        switch refusal {
        case .badRequest: "bad_request"
        case .uriTooLong: "uri_too_long"
        case .headerTooLarge: "header_too_large"
        case .bodyTooLarge: "body_too_large"
        case .headTimeout: "head_timeout"
        case .bodyTimeout: "body_timeout"
        case .unsupportedTransferEncoding: "transfer_encoding"
        case .httpVersionNotSupported: "http_version"
        case .expectationFailed: "expectation"
        case .tooManyConnections: "too_many_connections"
        case .tooManyBufferedBytes: "too_many_buffered_bytes"
        }
    }
}

extension HTTPServerRefusal {
    /// Whether there was nothing wrong with the request but its time.
    fileprivate var isUnderLoad: Bool {
        switch self {
        case .tooManyConnections, .tooManyBufferedBytes: true
        case .badRequest, .uriTooLong, .headerTooLarge, .bodyTooLarge, .headTimeout, .bodyTimeout,
            .unsupportedTransferEncoding, .httpVersionNotSupported, .expectationFailed:
            false
        }
    }
}
