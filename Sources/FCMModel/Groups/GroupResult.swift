import NIOCore
import StrictJSON

/// The result of a request to manage a device group.
package struct GroupResult: Sendable, Hashable {
    /// One of the group's valid keys, or the failure.
    package var answer: Result<String, GroupFailure>
    /// The HTTP status, or the name of a failure in transit. The set of values is bounded, and no value contains
    /// payload.
    package var upstreamCode: String

    package init(_ answer: Result<String, GroupFailure>, upstreamCode: String) {
        self.answer = answer
        self.upstreamCode = upstreamCode
    }

    /// Creates the result of a request without an answer. The request may have taken effect, but every change can be
    /// retried.
    package init(transportFailure upstreamCode: String) {
        self.init(.failure(GroupFailure(.upstreamUnavailable)), upstreamCode: upstreamCode)
    }
}

/// The reason that FCM did not change or find a device group.
package struct GroupFailure: Error, Sendable, Hashable {
    /// The kind of a failure. The set is closed, so metrics may use it.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A group with this name exists.
        case groupExists = "group_exists"
        /// There is no such group, or its name and key do not match.
        case groupNotFound = "group_not_found"
        case noValidTokens = "no_valid_tokens"
        /// The key is damaged, or belongs to another sender.
        case groupKeyInvalid = "group_key_invalid"
        case invalidField = "invalid_field"
        /// FCM refuses the gateway's own credential, or the gateway has none.
        case upstreamCredentials = "upstream_credentials"
        case upstreamInternal = "upstream_internal"
        /// FCM can't be reached, gave no answer or is overloaded.
        case upstreamUnavailable = "upstream_unavailable"
        case upstreamProtocol = "upstream_protocol"
    }

    package var kind: Kind
    /// Seconds.
    package var retryAfter: Int?
    /// FCM's text if FCM refused the request. The gateway's text if the gateway has no credential.
    package var text: String?

    package init(_ kind: Kind, retryAfter: Int? = nil, text: String? = nil) {
        self.kind = kind
        self.retryAfter = retryAfter
        self.text = text
    }

    /// True if the same request can be tried again.
    package var isRetryable: Bool { self.outcomeCode.isRetryable && self.kind != .groupExists }

    /// True if FCM has certainly done nothing.
    package var isDefinite: Bool { self.row.isDefinite }

    package var outcomeCode: OutcomeCode { self.row.code }

    /// The status for clients of `/fcm/notification`.
    fileprivate var status: Int { self.row.status }

    private var row: (code: OutcomeCode, isDefinite: Bool, status: Int) {
        switch self.kind {
        case .groupExists: (.groupConflict, true, 400)
        case .groupNotFound: (.notFound, true, 400)
        case .noValidTokens: (.noValidTokens, true, 400)
        case .groupKeyInvalid: (.upstreamProtocol, true, 400)
        case .invalidField: (.invalidField, true, 400)
        // A client can't repair the gateway's own credential or an answer that can't be understood. The client
        // therefore gets an internal error.
        case .upstreamCredentials: (.upstreamCredentials, true, 500)
        case .upstreamProtocol: (.upstreamProtocol, false, 500)
        case .upstreamInternal: (.upstreamInternal, false, 500)
        case .upstreamUnavailable: (.upstreamUnavailable, false, 503)
        }
    }
}

/// Reads the answers of `/fcm/notification`.
package enum GroupResponseReader {
    /// Reads the key or the failure. If `Retry-After` is a date, the delay is counted from `now`, in seconds since
    /// 1970.
    package static func read(_ response: UpstreamResponse, now: Int) -> GroupResult {
        GroupResult(Self.answer(response, now: now), upstreamCode: String(response.status))
    }

    private static func answer(_ response: UpstreamResponse, now: Int) -> Result<String, GroupFailure> {
        let delay = response.delay(now: now)
        switch response.status {
        case 200:
            guard let key = response.json()?["notification_key"]?.string, AnswerBounds.isToken(key),
                ValueRules.isGroupKey(key)
            else {
                return .failure(GroupFailure(.upstreamProtocol))
            }
            return .success(key)
        case 400: return .failure(Self.refusal(response))
        case 401, 403: return .failure(GroupFailure(.upstreamCredentials))
        case 429:
            return .failure(GroupFailure(.upstreamUnavailable, retryAfter: delay ?? RetryAfter.afterTooManyRequests))
        case 500: return .failure(GroupFailure(.upstreamInternal, retryAfter: delay))
        case 501...599: return .failure(GroupFailure(.upstreamUnavailable, retryAfter: delay))
        default: return .failure(GroupFailure(.upstreamProtocol))
        }
    }

    private static func refusal(_ response: UpstreamResponse) -> GroupFailure {
        let text = response.json()?["error"]?.string ?? Self.plainText(response)
        guard let text, !text.isEmpty else { return GroupFailure(.invalidField, text: "BadRequest") }
        let beginning = AnswerBounds.beginning(of: text)
        return GroupFailure(Self.kind(of: beginning.lowercased()), text: beginning)
    }

    private static func kind(of text: String) -> GroupFailure.Kind {
        if text.contains("already exists") { return .groupExists }
        if text.contains("notification_key not found") { return .groupNotFound }
        if text.contains("no valid registration ids") { return .noValidTokens }
        if text.contains("error decrypting grouptoken") { return .groupKeyInvalid }
        return .invalidField
    }

    /// Returns the first line of a text body. Returns `nil` for HTML, which is useless to a client.
    private static func plainText(_ response: UpstreamResponse) -> String? {
        let bytes = response.body.readableBytesView
        guard !bytes.contains(UInt8(ascii: "<")) else { return nil }
        let line = bytes.drop(while: \.isBlank).prefix { !(0x0A...0x0D).contains($0) }
        return String(decoding: line, as: UTF8.self)
    }
}

/// Writes the answers of `/fcm/notification`.
package enum GroupReplyWriter {
    package static func reply(to result: GroupResult) -> Reply {
        switch result.answer {
        case .success(let key):
            return Reply(member: "notification_key", key)
        case .failure(let failure):
            let code = failure.outcomeCode
            switch failure.status {
            case 400:
                return Reply(status: 400, member: "error", failure.text ?? failure.kind.rawValue, code: code)
            case 503:
                return Self.unavailable(code, retryAfter: failure.retryAfter)
            default:
                let name = LegacyErrorName.internalServerError.rawValue
                return Reply(status: 500, member: "error", name, retryAfter: failure.retryAfter, code: code)
            }
        }
    }

    /// Answers a request that can't be read or is not allowed. The answer is a 401, a 405, or a 400 with an `error`.
    package static func reply(to refusal: Refusal) -> Reply {
        switch refusal.code {
        case .unauthenticated, .forbidden, .auditUnavailable:
            LegacyReplyWriter.unauthorized(refusal.code)
        case .methodNotAllowed:
            Reply(status: 405, text: "Method Not Allowed", code: refusal.code)
        default:
            Reply(status: 400, member: "error", refusal.detail ?? refusal.code.title, code: refusal.code)
        }
    }

    package static func unavailable(_ code: OutcomeCode, retryAfter: Int?) -> Reply {
        let name = LegacyErrorName.unavailable.rawValue
        return Reply(status: 503, member: "error", name, retryAfter: retryAfter, code: code)
    }
}
