import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// Sends a message as HTTP v1 does: `POST /v1/projects/{project}/messages:send`.
///
/// A v1 upstream gets the message as the caller wrote it, a legacy one its translation where nothing is lost by it.
struct SendV1Message: SendEndpoint {
    typealias Writer = V1ReplyWriter

    let sender: MessageSender
    let route = Route(.post, "/v1/projects/{project}/messages:send")
        .with(\.scope, .sendMessages)
        .with(\.dialect, .v1)
        .with(\.bodyLimit, Route.largeBody)
        .with(\.isSend, true)
        .with(\.spelling, .exact)

    func read(_ exchange: Exchange) throws -> Sending<V1ReplyWriter> {
        let principal = try exchange.caller
        let given = try V1RequestDecoder.decode(exchange.request.body)
        let message = try Self.reworded(given, for: principal.profile, now: exchange.time)
        guard !message.target.isDisguisedTopic else { throw Refusal(.invalidToken) }
        let command = SendCommand(
            principal: principal,
            target: message.target,
            tokenMayBeGroup: true,
            message: message.message,
            payloadBytes: message.payloadBytes,
            origin: exchange.origin,
            deadline: exchange.deadline
        )
        // As the caller put it: its translation depends on the time.
        let keyed = exchange.idempotencyKey.map { key in
            KeyedRequest(
                key: key,
                route: .v1,
                method: exchange.request.head.method.rawValue,
                path: exchange.request.head.pathBytes,
                target: given.target,
                message: given.message
            )
        }
        return Sending(command: command, keyed: keyed, writer: V1ReplyWriter(project: principal.profile.project))
    }

    /// A message in the words of the tenant's upstream.
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

/// Writes the answers to a send in v1's words.
struct V1ReplyWriter: SendReplyWriter {
    /// The project's id as it stands in the request's path.
    let project: String

    func response(to outcome: SendOutcome) -> HTTPServerResponse {
        HTTPServerResponse(V1Reply(outcome, project: self.project))
    }

    func response(refusing refusal: Refusal) -> HTTPServerResponse {
        HTTPServerResponse(V1Reply(refusing: refusal.rejection))
    }
}

extension V1Reply {
    /// What became of a send of one call.
    init(_ outcome: SendOutcome, project: String) {
        if let answer = outcome.handedOn {
            self.init(handingOn: answer.response, code: outcome.code)
            return
        }
        switch outcome.answer {
        case .single(let outcome): self.init(outcome, project: project)
        case .multiple(let outcomes):
            // One call has one target, so there is one.
            self.init(outcomes.first ?? .rejected(.internalError), project: project)
        case .group: self = .groupAcceptance
        case .refused(let refusal): self.init(refusing: refusal.rejection)
        }
    }
}
