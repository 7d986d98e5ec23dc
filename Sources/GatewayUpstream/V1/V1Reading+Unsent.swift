import EventLoopHTTP
import FCMModel

extension V1Reading {
    /// A call whose time was up before it was made.
    static let notStarted = V1Reading(transportFailure: .upstreamUnavailable, upstreamCode: "not_started")

    /// A call whose leaving could not be kept, so that it did not leave.
    static let notKept = V1Reading(answer: .rejected(Rejection(code: .overloaded)), upstreamCode: "not_started")

    /// A call that got no answer.
    init(_ error: HTTPClientError) {
        self.init(transportFailure: error.outcomeCode, upstreamCode: error.code.rawValue)
    }

    /// A call that is not worth making now.
    init(_ obstacle: UpstreamHealth.Obstacle) {
        self.init(
            answer: .rejected(Rejection(code: obstacle.code, retryAfter: obstacle.retryAfter)),
            upstreamCode: obstacle.upstreamCode
        )
    }

    /// A call that could not be made for want of an access token.
    init(_ failure: TokenFailure) {
        let signal: Signal =
            switch failure.kind {
            case .refused: .credentialRefused
            case .unreachable: .trouble
            }
        self.init(
            answer: .rejected(Rejection(code: failure.outcomeCode, retryAfter: failure.retryAfter)),
            signal: signal,
            upstreamCode: failure.code
        )
    }
}
