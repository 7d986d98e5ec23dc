import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

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
    /// A legacy upstream would treat a token that begins with `/topics/` as a topic. No token may bypass a key's topic
    /// prefixes or the topic's own limit.
    var isPossible: Bool {
        switch self {
        case .token(let text), .notificationKey(let text):
            RegistrationToken.isWithinBounds(text) && !TopicName.hasLegacyPrefix(text)
        case .installation(let text): RegistrationToken.isWithinBounds(text)
        case .tokens, .installations, .topic, .condition, .deviceGroup: true
        }
    }
}

/// Manages device groups as FCM does: `POST` and `GET /fcm/notification`.
///
/// Names, keys and errors are FCM's own. Callers authenticate with the gateway's API key, and `project_id` must be the
/// tenant's sender id (G-PROJECT).
struct LegacyGroups: Endpoint {
    let route: Route
    let groups: DeviceGroups

    init(_ method: HTTPRequest.Method, _ groups: DeviceGroups) {
        // Every POST counts as a put here: the body names the real change, and the scope is checked before it is read.
        let action: AuditRecord.Action = method == .get ? .deviceGroupLookUp : .deviceGroupPut
        self.route = Route(method, GroupRequestEncoder.path)
            .with(\.credential, .legacyKey)
            .with(\.action, action)
            .with(\.dialect, .groups)
            .with(\.spelling, .exact)
        self.groups = groups
    }

    func read(_ exchange: Exchange) throws -> GroupRequest {
        let senderID = exchange[.projectID]
        let tenant = try exchange.caller.profile.tenant
        guard senderID == nil || senderID == tenant.senderID else {
            throw Refusal(.forbidden)
        }
        let request = exchange.request
        guard self.route.method == .get else {
            return try GroupRequestDecoder.decode(request.body, contentType: exchange.contentType)
        }
        let query = request.head.pathBytes.dropFirst(self.route.template.utf8.count + 1)
        return try GroupRequestDecoder.decode(query: ByteBuffer(bytes: query))
    }

    func perform(_ work: GroupRequest, for exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        do throws(Refusal) {
            return HTTPServerResponse(GroupReplyWriter.reply(to: try await self.groups.forward(work, by: caller)))
        } catch  where error.code == .groupTooLarge {
            return HTTPServerResponse(GroupReplyWriter.reply(to: error))
        } catch {
            return HTTPServerResponse(GroupReplyWriter.unavailable(error.code, retryAfter: error.retryAfter))
        }
    }
}
