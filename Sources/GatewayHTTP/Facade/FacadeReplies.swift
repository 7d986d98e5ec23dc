import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

// What became of a send in the words of FCM's own protocols, on its way out.

extension LegacyReplyWriter {
    /// Answers with what became of a send.
    func reply(to outcome: SendOutcome) -> LegacyReply {
        switch outcome.answer {
        case .single(let outcome): self.reply(with: [outcome])
        case .multiple(let outcomes): self.reply(with: outcomes)
        case .group(let group): self.reply(with: group)
        case .refused(let refusal): self.reply(refusing: refusal.rejection)
        }
    }
}

extension V1Reply {
    /// What became of a send of one call.
    ///
    /// - Parameters:
    ///   - outcome: that.
    ///   - project: the project's id as it stands in the request's path.
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

extension HTTPServerResponse {
    /// A legacy answer on its way out.
    init(_ reply: LegacyReply) {
        var headers: HTTPHeaderLines = [.contentType: reply.contentType]
        if let retryAfter = reply.retryAfter { headers.append(.retryAfter, String(retryAfter)) }
        switch reply.status {
        case 401: headers.append(.wwwAuthenticate, "Bearer")
        case 415: headers.append(.acceptEncoding, "identity")
        default: break
        }
        self.init(status: HTTPResponse.Status(code: reply.status), headers: headers, body: reply.body)
        self.code = reply.code?.rawValue
    }

    /// A v1 answer on its way out.
    init(_ reply: V1Reply) {
        var headers: HTTPHeaderLines = [.contentType: reply.contentType]
        if let retryAfter = reply.retryAfter { headers.append(.retryAfter, retryAfter) }
        if reply.status == 401 { headers.append(.wwwAuthenticate, "Bearer") }
        self.init(status: HTTPResponse.Status(code: reply.status), headers: headers, body: reply.body)
        self.code = reply.code?.rawValue
    }
}
