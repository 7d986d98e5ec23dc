package import FCMModel
package import GatewayCore

/// An upstream that answers as it is told and remembers what it was asked.
package final class ScriptedUpstream: UpstreamSender {
    /// Answers a call.
    package typealias Responder = @Sendable (UpstreamCall) async -> UpstreamResult

    private struct State {
        var calls: [UpstreamCall] = []
        var refusal: Refusal?
    }

    private let state = Observed(State())
    private let respond: Responder

    /// An upstream with an answer to every call; by default it accepts every recipient.
    package init(_ respond: @escaping Responder = { ScriptedUpstream.accepting($0) }) {
        self.respond = respond
    }

    /// The calls so far.
    package var calls: [UpstreamCall] {
        self.state.current.calls
    }

    /// Returns when so many calls have come.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first.
    package func wait(forCalls count: Int) async throws {
        try await self.state.wait { $0.calls.count >= count }
    }

    /// Refuses every target from now on, or none.
    package func refuse(with refusal: Refusal?) {
        self.state.change { $0.refusal = refusal }
    }

    /// What it was told to refuse with.
    package func refusal(of target: Target, for profile: TenantProfile) -> Refusal? {
        self.state.current.refusal
    }

    /// Remembers the call and answers it.
    package func send(_ call: UpstreamCall) async -> UpstreamResult {
        self.state.change { $0.calls.append(call) }
        return await self.respond(call)
    }

    /// Accepts every recipient of a call; the message ids count up from `fcm-1`.
    package static func accepting(_ call: UpstreamCall) -> UpstreamResult {
        let outcomes = (1...call.target.recipientCount)
            .map { RecipientOutcome.accepted(Acceptance(messageID: "fcm-\($0)")) }
        return UpstreamResult(answer: .recipients(outcomes), upstreamCode: "200")
    }
}
