package import FCMModel
package import GatewayCore
import Synchronization

/// A management of device groups that answers as it is told and remembers what it was asked.
package final class ScriptedGroupUpstream: GroupUpstream {
    private struct State {
        var requests: [GroupRequest] = []
        var results: [GroupResult] = []
    }

    private let state = Mutex(State())
    private let hold: @Sendable () async -> Void

    /// An upstream that has no group of any name and takes every change with the key `key-1`, unless it is told otherwise.
    ///
    /// - Parameter hold: awaited before every answer.
    package init(hold: @escaping @Sendable () async -> Void = {}) {
        self.hold = hold
    }

    /// The requests so far.
    package var requests: [GroupRequest] { self.state.withLock { $0.requests } }

    /// Answers the next requests with these.
    package func answer(_ results: GroupResult...) {
        self.state.withLock { $0.results += results }
    }

    /// Remembers the request and answers it.
    package func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: ContinuousClock.Instant,
        origin: RequestOrigin
    ) async -> GroupResult {
        self.state.withLock { $0.requests.append(request) }
        await self.hold()
        return self.state.withLock { state in
            guard state.results.isEmpty else { return state.results.removeFirst() }
            switch request {
            case .change: return GroupResult(.success("key-1"), upstreamCode: "200")
            case .lookUp: return .failing(.groupNotFound)
            }
        }
    }
}

extension GroupResult {
    /// A failure as FCM reports it.
    package static func failing(_ kind: GroupFailure.Kind, retryAfter: Int? = nil) -> GroupResult {
        GroupResult(.failure(GroupFailure(kind, retryAfter: retryAfter, text: kind.rawValue)), upstreamCode: "400")
    }
}
