import FCMModel
import GatewayCore
import NIOCore

@testable import GatewayUpstream

/// Properties of every answer of a token endpoint.
enum TokenAnswerProperties {
    private final class Token: Sendable {}

    /// Checks an answer, whose `Retry-After` is its `Date` too.
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let answer = AnswerInput(input) else { return }
        let reply = TokenReply(
            status: answer.status,
            retryAfter: answer.retryAfter,
            date: answer.retryAfter,
            body: ByteBuffer(bytes: answer.body)
        )
        let now = Uptime.now
        var state = TokenState<Token, Uptime>()
        switch reply.read(now: AnswerInput.now) {
        case .success(let token):
            try FuzzFinding.require((200...299).contains(answer.status), "a token with status \(answer.status)")
            try FuzzFinding.require(AnswerBounds.isToken(token.text.revealText()), "a token that is none")
            try FuzzFinding.require(
                (1...86_400).contains(token.lifetimeSeconds),
                "a life of \(token.lifetimeSeconds) s"
            )
            state.succeeded(Token(), lifetime: .seconds(token.lifetimeSeconds), since: now, chance: 0.5)
            try FuzzFinding.require(state.current(at: now) != nil, "a fresh token is not used")
        case .failure(let failure):
            try FuzzFinding.require((failure.detail ?? "").utf8.count <= 800, "a long text")
            state.failed(failure, at: now, chance: 0.5)
            let later = now.advanced(by: .seconds(61))
            guard case .exchange = state.next(at: later) else { throw FuzzFinding("no token is asked for again") }
            let result = SendResult(
                refused: failure.outcomeCode,
                retryAfter: failure.kind == .unreachable ? failure.retryAfter : nil,
                upstreamCode: failure.code
            )
            try SendConsequences.check(result, to: .token("a"))
        }
    }
}
