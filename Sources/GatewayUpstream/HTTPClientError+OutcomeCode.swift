import EventLoopHTTP
import FCMModel

extension HTTPClientError {
    /// What callers are told of a call that got no answer.
    ///
    /// Once a request may have reached FCM and nothing came back, nobody knows whether the message was delivered.
    var outcomeCode: OutcomeCode {
        switch self.code {
        case .connectFailed, .connectTimeout, .tlsFailed, .poolExhausted, .refused:
            .upstreamUnavailable
        case .deadlineExceeded, .connectionClosed, .cancelled, .shutDown:
            self.requestSent ? .outcomeUnknown : .upstreamUnavailable
        case .responseTooLarge, .invalidResponse:
            .upstreamProtocol
        }
    }
}
