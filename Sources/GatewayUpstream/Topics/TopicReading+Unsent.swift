import EventLoopHTTP
import FCMModel

extension TopicReading {
    /// A call whose time was up before it was made.
    static let notStarted = TopicReading(rejected: .upstreamUnavailable, upstreamCode: "not_started")

    /// A call that got no answer.
    ///
    /// Unlike a message, a change that may have been made can be repeated without harm.
    init(_ error: HTTPClientError) {
        let code = error.outcomeCode
        self.init(
            rejected: code == .outcomeUnknown ? .upstreamUnavailable : code,
            upstreamCode: error.code.rawValue
        )
    }

    /// A call that could not be made for want of an access token.
    init(_ failure: TokenFailure) {
        self.init(
            rejected: failure.outcomeCode,
            retryAfter: failure.kind == .unreachable ? failure.retryAfter : nil,
            signal: .holdsForAll,
            upstreamCode: failure.code
        )
    }

    /// The outcomes of a change of some devices' subscriptions.
    func outcomes(count: Int) -> [SubscriptionOutcome] {
        switch self.answer {
        case .changed(let outcomes): outcomes
        case .rejected(let rejection): Array(repeating: .rejected(rejection), count: count)
        case .registration: Array(repeating: .rejected(.upstreamProtocol), count: count)
        }
    }
}
