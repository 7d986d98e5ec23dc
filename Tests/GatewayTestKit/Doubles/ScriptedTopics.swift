import FCMModel
package import GatewayCore
import Synchronization

/// A keeper of subscriptions that answers as it is told and remembers what it was asked.
package final class ScriptedTopics: TopicUpstream {
    private struct State {
        var changes: [SubscriptionCall] = []
        var lookUps: [RegistrationCall] = []
        var results: [SubscriptionResult] = []
        var registrations: [RegistrationResult] = []
    }

    private let state = Mutex(State())
    private let hold: @Sendable () async -> Void

    /// A keeper that does whatever it is asked, and knows of no subscriptions.
    ///
    /// - Parameter hold: awaited before every answer.
    package init(hold: @escaping @Sendable () async -> Void = {}) {
        self.hold = hold
    }

    /// The changes that were asked for so far.
    package var changes: [SubscriptionCall] { self.state.withLock { $0.changes } }

    /// The look-ups that were asked for so far.
    package var lookUps: [RegistrationCall] { self.state.withLock { $0.lookUps } }

    /// Answers the next changes with these.
    package func answer(_ results: SubscriptionResult...) {
        self.state.withLock { $0.results += results }
    }

    /// Answers the next look-ups with these.
    package func answer(_ results: RegistrationResult...) {
        self.state.withLock { $0.registrations += results }
    }

    /// Remembers the call and answers it.
    package func change(_ call: SubscriptionCall) async -> SubscriptionResult {
        self.state.withLock { $0.changes.append(call) }
        await self.hold()
        return self.state.withLock { state in
            guard state.results.isEmpty else { return state.results.removeFirst() }
            return SubscriptionResult(Array(repeating: .done, count: call.tokens.count), upstreamCode: "200")
        }
    }

    /// Remembers the call and answers it.
    package func lookUp(_ call: RegistrationCall) async -> RegistrationResult {
        self.state.withLock { $0.lookUps.append(call) }
        await self.hold()
        return self.state.withLock { state in
            guard state.registrations.isEmpty else { return state.registrations.removeFirst() }
            return RegistrationResult(.found(RegistrationInfo()), upstreamCode: "200")
        }
    }
}
