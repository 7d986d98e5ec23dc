import FCMModel
import Synchronization

/// What the audit learns of a change while it is under way.
final class GroupTrace: Sendable {
    private struct State {
        var upstreamCode: String?
        var refusal: OutcomeCode?
    }

    /// The request behind the change.
    let request: RequestOrigin
    private let state = Mutex(State())

    init(of request: RequestOrigin) {
        self.request = request
    }

    /// What FCM said last; `nil` while it was not asked.
    var upstreamCode: String? { self.state.withLock { $0.upstreamCode } }

    /// FCM's refusal, where the caller gets it in FCM's own words.
    var refusal: OutcomeCode? { self.state.withLock { $0.refusal } }

    /// Notes what FCM said.
    func note(_ upstreamCode: String, refusal: OutcomeCode? = nil) {
        self.state.withLock { state in
            state.upstreamCode = upstreamCode
            state.refusal = refusal
        }
    }
}
