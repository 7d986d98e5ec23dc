import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// Sends a message as the legacy protocol does: `POST /fcm/send`, JSON or a form.
///
/// Requests and replies are legacy FCM's. In between, a message passes through the pipeline of all sends.
struct SendLegacyMessage: SendEndpoint {
    typealias Writer = LegacyReplyWriter

    let sender: MessageSender
    let route = Route(.post, "/fcm/send")
        .with(\.credential, .legacyKey)
        .with(\.action, .messageSend)
        .with(\.dialect, .legacy)
        .with(\.bodyLimit, Route.largeBody)
        .with(\.isSend, true)
        .with(\.spelling, .exact)

    func read(_ exchange: Exchange) throws -> Sending<LegacyReplyWriter> {
        let format = LegacyFormat(contentType: exchange.contentType)
        let multicastID = LegacyReplyWriter.newMulticastID()
        let request = try Self.request(in: exchange, format, multicastID)
        let writer = LegacyReplyWriter(answering: request, format: format, multicastID: multicastID)
        // Nothing is left to send if the gateway refused all recipients.
        guard let target = request.sentTarget else { throw Answered(HTTPServerResponse(writer.reply(with: []))) }
        let command = SendCommand(
            by: try exchange.caller,
            to: target,
            tokenMayBeGroup: true,
            message: request.message,
            payloadBytes: request.payloadBytes
        )
        let idempotent = exchange.idempotencyKey.map { key in
            IdempotentRequest(
                key: key,
                route: .legacy,
                format: format,
                method: exchange.request.head.method.rawValue,
                path: exchange.request.head.pathBytes,
                target: request.target,
                message: request.message
            )
        }
        return Sending(command: command, idempotent: idempotent, writer: writer)
    }

    /// Reads the body. The body's target, if it is known, decides the form of a refusal.
    private static func request(
        in exchange: Exchange,
        _ format: LegacyFormat,
        _ multicastID: Int
    ) throws(Answered) -> LegacySendRequest {
        var shape = LegacyReplyWriter.Shape.results(count: 1)
        do throws(Refusal) {
            let body = exchange.request.body
            let request =
                switch format {
                case .json: try LegacyRequestDecoder.decode(body, shape: &shape)
                case .form: try LegacyFormDecoder.decode(body)
                }
            guard request.target.isPossible else { throw Refusal(.invalidToken) }
            return request
        } catch {
            let writer = LegacyReplyWriter(shape: shape, format: format, multicastID: multicastID)
            throw Answered(HTTPServerResponse(writer.reply(to: error)))
        }
    }
}

extension LegacyReplyWriter: SendReplyWriter {
    func reply(refusing refusal: Refusal) -> Reply { self.reply(refusing: refusal.rejection) }

    func reply(to outcome: SendOutcome) -> Reply {
        switch outcome.result.answer {
        case .recipients(let outcomes): self.reply(with: outcomes)
        case .group(let group): self.reply(with: group)
        case .refused(let refusal): self.reply(refusing: refusal.rejection)
        }
    }
}

extension Target {
    /// False for a lone recipient that is out of a token's bounds, or a token that looks like a topic.
    ///
    /// A legacy upstream would treat a token that begins with `/topics/` as a topic. No token may bypass a key's topic prefixes or the
    /// topic's own limit.
    var isPossible: Bool {
        switch self {
        case .token(let text), .notificationKey(let text):
            RegistrationToken.isWithinBounds(text) && !TopicName.hasLegacyPrefix(text)
        case .installation(let text): RegistrationToken.isWithinBounds(text)
        case .tokens, .installations, .topic, .condition, .deviceGroup: true
        }
    }
}
