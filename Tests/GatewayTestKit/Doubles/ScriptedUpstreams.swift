package import FCMModel
package import GatewayCore
import Synchronization

/// An upstream that gives scripted answers and records its calls.
package final class ScriptedUpstream: UpstreamSender {
    package typealias Responder = @Sendable (UpstreamCall) async -> SendResult

    private struct State {
        var calls: [UpstreamCall] = []
        var refusal: Refusal?
    }

    private let state = Observed(State())
    private let respond: Responder

    package init(_ respond: @escaping Responder = { ScriptedUpstream.accepting($0) }) {
        self.respond = respond
    }

    package var calls: [UpstreamCall] { self.state.current.calls }

    package func wait(forCalls count: Int) async throws { try await self.state.wait { $0.calls.count >= count } }

    package func refuse(with refusal: Refusal?) { self.state.change { $0.refusal = refusal } }

    package func refusal(of target: Target, for profile: TenantProfile) -> Refusal? { self.state.current.refusal }

    package func send(_ call: UpstreamCall) async -> SendResult {
        self.state.change { $0.calls.append(call) }
        return await self.respond(call)
    }

    /// Accepts every recipient of a call; the message ids count up from `fcm-1`.
    package static func accepting(_ call: UpstreamCall) -> SendResult {
        let outcomes = (1...call.target.recipientCount)
            .map { RecipientOutcome.accepted(Acceptance(messageID: "fcm-\($0)")) }
        return SendResult(outcomes, upstreamCode: "200")
    }
}

/// A topic upstream that gives scripted answers and records its calls.
package final class ScriptedTopics: TopicUpstream {
    private struct State {
        var changes: [SubscriptionCall] = []
        var lookUps: [RegistrationCall] = []
        var results: [SubscriptionResult] = []
        var registrations: [RegistrationResult] = []
    }

    private let state = Mutex(State())
    private let hold: @Sendable () async -> Void

    /// Without scripted answers, every change succeeds and no device has subscriptions.
    package init(hold: @escaping @Sendable () async -> Void = {}) {
        self.hold = hold
    }

    package var changes: [SubscriptionCall] { self.state.withLock { $0.changes } }

    package var lookUps: [RegistrationCall] { self.state.withLock { $0.lookUps } }

    package func answer(_ results: SubscriptionResult...) { self.state.withLock { $0.results += results } }

    package func answer(_ results: RegistrationResult...) { self.state.withLock { $0.registrations += results } }

    package func change(_ call: SubscriptionCall) async -> SubscriptionResult {
        self.state.withLock { $0.changes.append(call) }
        await self.hold()
        return self.state.withLock { state in
            guard state.results.isEmpty else { return state.results.removeFirst() }
            return SubscriptionResult(Array(repeating: .done, count: call.tokens.count), upstreamCode: "200")
        }
    }

    package func lookUp(_ call: RegistrationCall) async -> RegistrationResult {
        self.state.withLock { $0.lookUps.append(call) }
        await self.hold()
        return self.state.withLock { state in
            guard state.registrations.isEmpty else { return state.registrations.removeFirst() }
            return RegistrationResult(.success(RegistrationInfo()), upstreamCode: "200")
        }
    }
}

/// A device group upstream that gives scripted answers and records its requests.
package final class ScriptedGroupUpstream: GroupUpstream {
    private struct State {
        var requests: [GroupRequest] = []
        var results: [GroupResult] = []
    }

    private let state = Mutex(State())
    private let hold: @Sendable () async -> Void

    /// Without scripted answers, no group exists and every change succeeds with the key `key-1`.
    package init(hold: @escaping @Sendable () async -> Void = {}) {
        self.hold = hold
    }

    package var requests: [GroupRequest] { self.state.withLock { $0.requests } }

    package func answer(_ results: GroupResult...) { self.state.withLock { $0.results += results } }

    package func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: Uptime,
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
    package static func failing(_ kind: GroupFailure.Kind, retryAfter: Int? = nil) -> GroupResult {
        GroupResult(.failure(GroupFailure(kind, retryAfter: retryAfter, text: kind.rawValue)), upstreamCode: "400")
    }
}

/// A credential prover that gives a scripted report.
package struct ScriptedProver: CredentialProver {
    private let finding: @Sendable (UpstreamKind, TenantProfile) -> CredentialReport

    package init(
        finding: @escaping @Sendable (UpstreamKind, TenantProfile) -> CredentialReport = { kind, _ in
            CredentialReport(.valid, "It is a good \(kind.rawValue) credential", upstreamCode: "200")
        }
    ) {
        self.finding = finding
    }

    package func prove(
        _ kind: UpstreamKind,
        of profile: TenantProfile,
        origin: RequestOrigin
    ) async -> CredentialReport {
        self.finding(kind, profile)
    }
}
