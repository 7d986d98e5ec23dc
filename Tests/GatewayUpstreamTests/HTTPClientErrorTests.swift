import EventLoopHTTP
import FCMModel
import Testing

@testable import GatewayUpstream

struct HTTPClientErrorTests {
    @Test("Only what was certainly not sent may be repeated", arguments: HTTPClientError.Code.allCases)
    func outcomes(code: HTTPClientError.Code) {
        let unsent = HTTPClientError(code: code, requestSent: false).outcomeCode
        let sent = HTTPClientError(code: code, requestSent: true).outcomeCode
        switch code {
        case .responseTooLarge, .invalidResponse:
            #expect(unsent == .upstreamProtocol)
            #expect(sent == .upstreamProtocol)
        case .connectFailed, .connectTimeout, .tlsFailed, .poolExhausted, .refused:
            #expect(unsent == .upstreamUnavailable)
        case .deadlineExceeded, .connectionClosed, .cancelled, .shutDown:
            #expect(unsent == .upstreamUnavailable)
            #expect(sent == .outcomeUnknown)
        }
    }
}
