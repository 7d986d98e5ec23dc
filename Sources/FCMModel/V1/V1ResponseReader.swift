import NIOCore
import StrictJSON

/// Understands what a v1 upstream answered to one call.
///
/// What can't be understood is never the death of a token.
package enum V1ResponseReader {
    /// Reads an answer.
    ///
    /// - Parameters:
    ///   - response: the answer.
    ///   - kind: what the request as a whole addressed; each call of a list is read as one of the list.
    ///   - mayBeGroup: whether that may be a device group, whose answer is an empty object.
    ///   - now: seconds since 1970, for a `Retry-After` that is a date.
    ///   - keepsAnswer: whether to keep an answer that is handed on; only messages that came by the v1 facade need it.
    ///   - isIdempotent: whether the request carries an idempotency key (R-LOST).
    /// - Returns: what the answer means for the caller and for the sender.
    package static func read(
        _ response: V1Response,
        for kind: TargetKind,
        mayBeGroup: Bool = false,
        now: Int,
        keepsAnswer: Bool = false,
        isIdempotent: Bool = false
    ) -> V1Reading {
        guard (200...299).contains(response.status) else {
            var reading = Self.refusal(response, for: kind, now: now, isIdempotent: isIdempotent)
            if keepsAnswer, reading.isHandedOn {
                var response = response
                response.retryAfter = response.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }.map(String.init)
                reading.handedOn = .answer(response)
            }
            return reading
        }
        return V1Reading(
            answer: Self.success(response.body, mayBeGroup: mayBeGroup),
            upstreamCode: String(response.status)
        )
    }

    /// What a 2xx says; one that says nothing is not taken for a delivery (TB-SUCCESS).
    ///
    /// A blank body is never a group's answer: it may be a proxy's.
    private static func success(_ body: ByteBuffer, mayBeGroup: Bool) -> V1Reading.Answer {
        let root = (try? JSONDocument(parsing: body))?.root
        if let name = root?["name"]?.string, let id = Self.messageID(in: name) {
            return .accepted(messageID: id)
        }
        return mayBeGroup && root?.members?.count == 0 ? .group : .rejected(Rejection(code: .upstreamProtocol))
    }

    /// The last part of `projects/<project>/messages/<id>`, whatever it looks like.
    private static func messageID(in name: String) -> String? {
        let projects = "projects/".utf8
        let messages = "/messages/".utf8
        guard name.utf8.starts(with: projects) else { return nil }
        let rest = name.utf8.dropFirst(projects.count)
        guard let end = rest.firstIndex(of: UInt8(ascii: "/")), end > rest.startIndex,
            rest[end...].starts(with: messages)
        else { return nil }
        let id = rest[end...].dropFirst(messages.count)
        let text = String(Substring(id))
        return AnswerBounds.isMessageID(text) ? text : nil
    }

    private static func refusal(
        _ response: V1Response,
        for kind: TargetKind,
        now: Int,
        isIdempotent: Bool
    ) -> V1Reading {
        let body = V1ErrorBody(response.body)
        let judgement = V1Judgement(status: response.status, body: body, kind: kind, isIdempotent: isIdempotent)
        let delay = response.retryAfter.flatMap { RetryAfter.seconds($0, now: now) } ?? body.retryDelay
        return V1Reading(
            answer: .rejected(
                Rejection(
                    code: judgement.code,
                    retryAfter: judgement.takesDelay ? delay ?? judgement.defaultDelay : nil,
                    limitedBy: judgement.signal == .targetQuota || judgement.signal == .projectQuota ? .fcm : nil,
                    legacyName: judgement.name
                )
            ),
            signal: judgement.signal,
            upstreamCode: Self.word(body) ?? String(response.status),
            isHandedOn: body.hasCode || response.status == 400
        )
    }

    /// FCM's own word for the refusal, where it is one of those that we know.
    private static func word(_ body: V1ErrorBody) -> String? {
        if body.isProjectQuota { return "RATE_LIMIT_EXCEEDED" }
        return switch body.code {
        case .known(let code): code.rawValue
        case .absent, .unknown: nil
        }
    }
}
