import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Sends a message: `POST /v1/tenants/{tenant}/messages`.
struct SendMessage: SendEndpoint {
    typealias Writer = AnswerWriter

    static let template = "/v1/tenants/{tenant}/messages"

    let sender: MessageSender
    let batches: Batches
    let route = Route(.post, Self.template)
        .with(\.action, .messageSend)
        .with(\.bodyLimit, Route.largeBody)
        .with(\.isSend, true)
        .with(\.spelling, .exact)

    func read(_ exchange: Exchange) throws -> Sending<AnswerWriter> {
        let members = try exchange.members()
        let (target, message) = try SendBody.read(members)
        var idempotent: IdempotentRequest?
        if let key = exchange.idempotencyKey {
            idempotent = IdempotentRequest(
                key: key,
                route: .messages,
                method: "POST",
                path: exchange.request.head.pathBytes,
                target: target,
                message: message
            )
        }
        let command = try SendCommand(message, to: target, by: exchange.caller, at: exchange.time)
        guard command.payloadBytes <= command.target.maxPayloadBytes else {
            throw Refusal.messageTooBig(command.payloadBytes, to: command.target)
        }
        if let preferences = exchange[.prefer], Self.wantsLater(preferences) {
            return self.later(command, members, exchange)
        }
        return Sending(command: command, idempotent: idempotent, writer: AnswerWriter(target: command.target))
    }

    private static func wantsLater(_ preferences: String) -> Bool {
        preferences.split(separator: ",")
            .contains { preference in
                preference.prefix { $0 != ";" }.trimmingPrefix { $0 == " " }.lowercased() == "respond-async"
            }
    }

    /// Accepts a message that is sent later (RFC 7240). It is a batch of its own.
    @inline(never)  // Keeps the frame small.
    private func later(
        _ command: SendCommand,
        _ members: JSONMembers,
        _ exchange: Exchange
    ) -> Sending<AnswerWriter> {
        let draft = Batches.Draft(command.target, members, request: Array(exchange.request.body.readableBytesView))
        return Sending(command: command, writer: AnswerWriter(target: command.target)) {
            let (batch, isNew) = try await self.batches.create(
                draft,
                key: exchange.idempotencyKey,
                by: command.caller
            )
            var response = HTTPServerResponse.accepted(batch, by: command.caller, isNew: isNew)
            response.headers.append(.preferenceApplied, "respond-async")
            return response
        }
    }
}

extension SendMessage {
    /// Writes the answers to a send in REST's words.
    struct AnswerWriter: SendReplyWriter {
        private static let json = "application/json"

        let target: Target

        func reply(to outcome: SendOutcome) -> Reply {
            var reply = self.content(outcome)
            reply.code = outcome.result.code
            return reply
        }

        func reply(refusing refusal: Refusal) -> Reply { refusal.reply() }

        private func content(_ outcome: SendOutcome) -> Reply {
            let id = outcome.messageID
            switch outcome.result.answer {
            case .refused(let refusal): return refusal.reply(messageID: id)
            case .group(let group): return Reply(contentType: Self.json, Self.group(group, id))
            case .recipients(let results) where self.target.isList:
                return Reply(contentType: Self.json, self.results(results, id))
            case .recipients(let results):
                switch results.first ?? .rejected(.upstreamProtocol) {
                case .accepted(let acceptance): return Reply(contentType: Self.json, Self.accepted(acceptance, id))
                case .rejected(let rejection): return Refusal(rejection).reply(messageID: id)
                }
            }
        }

        private static func accepted(_ acceptance: Acceptance, _ id: String) -> ByteBuffer {
            var writer = JSONWriter(reservingCapacity: 192)
            writer.beginObject()
            writer.member("id", id)
            writer.write(acceptance)
            writer.endObject()
            return writer.finish()
        }

        private func results(_ results: [RecipientOutcome], _ id: String) -> ByteBuffer {
            let accepted = results.count { if case .accepted = $0 { true } else { false } }
            let (name, recipients): (StaticString, [String]) =
                switch self.target {
                case .tokens(let tokens): ("token", tokens)
                case .installations(let ids): ("fid", ids)
                case .token, .installation, .topic, .condition, .notificationKey, .deviceGroup: ("token", [])
                }
            var writer = JSONWriter(reservingCapacity: 96 + results.count * 224)
            writer.beginObject()
            writer.member("id", id)
            writer.member("accepted", accepted)
            writer.member("rejected", results.count - accepted)
            writer.beginArray("results")
            for (recipient, result) in zip(recipients, results) {
                writer.beginObject()
                writer.member(name, recipient)
                switch result {
                case .accepted(let acceptance): writer.write(acceptance)
                case .rejected(let rejection): writer.write(rejection)
                }
                writer.endObject()
            }
            writer.endArray()
            writer.endObject()
            return writer.finish()
        }

        private static func group(_ group: GroupOutcome, _ id: String) -> ByteBuffer {
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("id", id)
            writer.member("accepted", group.success)
            writer.member("rejected", group.failure)
            writer.beginArray("results")
            for token in group.failedTokens {
                writer.beginObject()
                writer.member("token", token)
                writer.write(Rejection(code: .upstreamUnavailable))
                writer.endObject()
            }
            writer.endArray()
            writer.endObject()
            return writer.finish()
        }
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ acceptance: Acceptance) {
        self.member("status", "accepted")
        self.member("message_id", acceptance.messageID)
        if let replacement = acceptance.replacementToken { self.member("replacement_token", replacement) }
    }

    mutating func write(_ rejection: Rejection) {
        self.member("status", "rejected")
        self.member("code", rejection.code.rawValue)
        self.member("retryable", rejection.code.isRetryable)
        if let action = rejection.code.action { self.member("action", action.rawValue) }
        if let retryAfter = rejection.retryAfter { self.member("retry_after", retryAfter) }
        if let limitedBy = rejection.limitedBy { self.member("limited_by", limitedBy.rawValue) }
    }
}
