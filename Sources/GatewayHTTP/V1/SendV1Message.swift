import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// Sends a message as HTTP v1 does: `POST /v1/projects/{project}/messages:send`.
///
/// A v1 upstream gets the message as the caller wrote it; a legacy upstream gets its translation, if nothing is lost.
struct SendV1Message: SendEndpoint {
    typealias Writer = V1ReplyWriter

    let sender: MessageSender
    let route = Route(.post, "/v1/projects/{project}/messages:send")
        .with(\.action, .messageSend)
        .with(\.dialect, .v1)
        .with(\.bodyLimit, Route.largeBody)
        .with(\.isSend, true)
        .with(\.spelling, .exact)

    func read(_ exchange: Exchange) throws -> Sending<V1ReplyWriter> {
        let caller = try exchange.caller
        let given = try V1RequestDecoder.decode(exchange.request.body)
        let message = try Self.reworded(given, for: caller.profile, now: exchange.time)
        guard message.target.isPossible else { throw Refusal(.invalidToken) }
        let command = SendCommand(
            by: caller,
            to: message.target,
            tokenMayBeGroup: true,
            message: message.message,
            payloadBytes: message.payloadBytes
        )
        // The key covers the message as the caller wrote it, because its translation changes with the time.
        let idempotent = exchange.idempotencyKey.map { key in
            IdempotentRequest(
                key: key,
                route: .v1,
                method: exchange.request.head.method.rawValue,
                path: exchange.request.head.pathBytes,
                target: given.target,
                message: given.message
            )
        }
        let writer = V1ReplyWriter(project: caller.profile.project)
        return Sending(command: command, idempotent: idempotent, writer: writer)
    }

    /// A message in the protocol of the tenant's upstream.
    private struct Reworded {
        var target: Target
        var message: Message
        var payloadBytes: Int
    }

    private static func reworded(
        _ given: V1SendRequest,
        for profile: TenantProfile,
        now: Timestamp
    ) throws(Refusal) -> Reworded {
        switch profile.tenant.upstream {
        case .v1:
            return Reworded(target: given.target, message: given.message, payloadBytes: given.payloadBytes)
        case .legacy:
            let legacy = try given.legacyRequest(now: now.seconds)
            return Reworded(target: legacy.target, message: legacy.message, payloadBytes: legacy.payloadBytes)
        }
    }
}

extension V1ReplyWriter: SendReplyWriter {
    func reply(refusing refusal: Refusal) -> Reply { Self.reply(refusing: refusal.rejection) }

    func reply(to outcome: SendOutcome) -> Reply {
        if var reply = outcome.result.passThrough?.reply {
            reply.code = outcome.result.code
            return reply
        }
        switch outcome.result.answer {
        // One call has one target, hence one outcome.
        case .recipients(let outcomes):
            return self.reply(to: outcomes.first ?? RecipientOutcome.rejected(.internalError))
        case .group: return Self.groupAcceptance
        case .refused(let refusal): return Self.reply(refusing: refusal.rejection)
        }
    }
}
