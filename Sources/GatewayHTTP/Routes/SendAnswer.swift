import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// The answer to a send.
struct SendAnswer {
    let outcome: SendOutcome
    let target: Target

    var response: HTTPServerResponse {
        var response = self.answer
        response.headers.append(self.outcome.quotas)
        return response
    }

    /// The answer without the tenant's quotas.
    var answer: HTTPServerResponse {
        var response = self.content
        response.code = self.outcome.code?.rawValue
        return response
    }

    private var content: HTTPServerResponse {
        switch self.outcome.answer {
        case .refused(let refusal):
            refusal.response(messageID: self.outcome.messageID)
        case .single(.rejected(let rejection)):
            Refusal(rejection).response(messageID: self.outcome.messageID)
        case .single(.accepted(let acceptance)):
            Self.ok(self.accepted(acceptance))
        case .multiple(let results):
            Self.ok(self.results(results))
        case .group(let group):
            Self.ok(self.group(group))
        }
    }

    private static func ok(_ body: ByteBuffer) -> HTTPServerResponse {
        var headers = HTTPHeaderLines()
        headers.append(.contentType, "application/json")
        return HTTPServerResponse(status: .ok, headers: headers, body: body)
    }

    private func accepted(_ acceptance: Acceptance) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 192)
        writer.beginObject()
        writer.member("id", self.outcome.messageID)
        writer.write(acceptance)
        writer.endObject()
        return writer.finish()
    }

    private func results(_ results: [RecipientOutcome]) -> ByteBuffer {
        let accepted = results.count { if case .accepted = $0 { true } else { false } }
        let (name, recipients): (StaticString, [String]) =
            switch self.target {
            case .tokens(let tokens): ("token", tokens)
            case .installations(let ids): ("fid", ids)
            case .token, .installation, .topic, .condition, .notificationKey: ("token", [])
            }
        var writer = JSONWriter(reservingCapacity: 96 + results.count * 224)
        writer.beginObject()
        writer.member("id", self.outcome.messageID)
        writer.member("accepted", accepted)
        writer.member("rejected", results.count - accepted)
        writer.key("results")
        writer.beginArray()
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

    /// FCM's counts for a group, with the members that it named as failed.
    private func group(_ group: GroupOutcome) -> ByteBuffer {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("id", self.outcome.messageID)
        writer.member("accepted", group.success)
        writer.member("rejected", group.failure)
        writer.key("results")
        writer.beginArray()
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

extension JSONWriter {
    fileprivate mutating func write(_ acceptance: Acceptance) {
        self.member("status", "accepted")
        self.member("message_id", acceptance.messageID)
        if let replacement = acceptance.replacementToken { self.member("replacement_token", replacement) }
    }

    /// Writes the members that tell of a recipient's refusal.
    mutating func write(_ rejection: Rejection) {
        self.member("status", "rejected")
        self.member("code", rejection.code.rawValue)
        self.member("retryable", rejection.code.isRetryable)
        if let action = rejection.code.action { self.member("action", action.rawValue) }
        if let retryAfter = rejection.retryAfter { self.member("retry_after", retryAfter) }
        if let limitedBy = rejection.limitedBy { self.member("limited_by", limitedBy.rawValue) }
    }
}
