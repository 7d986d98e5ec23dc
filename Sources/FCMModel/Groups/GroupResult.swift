import NIOCore
import StrictJSON

/// The result of a request to manage a device group.
package struct GroupResult: Sendable, Hashable {
    /// A key of the group, one of many that are valid, or why there is none.
    package var answer: Result<String, GroupFailure>
    /// A status, or the name of a failure on the way: bounded and free of payload.
    package var upstreamCode: String

    package init(_ answer: Result<String, GroupFailure>, upstreamCode: String) {
        self.answer = answer
        self.upstreamCode = upstreamCode
    }

    /// A request that got no answer; whether it was carried out does not matter, since every change can be retried.
    package init(transportFailure upstreamCode: String) {
        self.init(.failure(GroupFailure(.upstreamUnavailable)), upstreamCode: upstreamCode)
    }
}

/// Why FCM did not change or find a device group.
package struct GroupFailure: Error, Sendable, Hashable {
    /// The kinds, a closed set that metrics may use.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// There is a group of the name already.
        case groupExists = "group_exists"
        /// There is no such group, or name and key do not belong together.
        case groupNotFound = "group_not_found"
        case noValidTokens = "no_valid_tokens"
        /// The key is damaged or foreign.
        case groupKeyInvalid = "group_key_invalid"
        case invalidField = "invalid_field"
        /// FCM does not take the gateway's own credential, or there is none to show.
        case upstreamCredentials = "upstream_credentials"
        case upstreamInternal = "upstream_internal"
        /// FCM can't be reached, gave no answer or is overloaded.
        case upstreamUnavailable = "upstream_unavailable"
        case upstreamProtocol = "upstream_protocol"
    }

    package var kind: Kind
    /// Seconds.
    package var retryAfter: Int?
    /// FCM's own words, where it refused the request itself; or the gateway's, where it lacks a credential.
    package var text: String?

    package init(_ kind: Kind, retryAfter: Int? = nil, text: String? = nil) {
        self.kind = kind
        self.retryAfter = retryAfter
        self.text = text
    }

    /// Whether the same can be tried again.
    package var isRetryable: Bool { self.outcomeCode.isRetryable && self.kind != .groupExists }

    /// Whether FCM is known to have done nothing.
    package var isDefinite: Bool { self.row.isDefinite }

    package var outcomeCode: OutcomeCode { self.row.code }

    /// The status that clients of `/fcm/notification` get.
    fileprivate var status: Int { self.row.status }

    private var row: (code: OutcomeCode, isDefinite: Bool, status: Int) {
        switch self.kind {
        case .groupExists: (.groupConflict, true, 400)
        case .groupNotFound: (.notFound, true, 400)
        case .noValidTokens: (.noValidTokens, true, 400)
        case .groupKeyInvalid: (.upstreamProtocol, true, 400)
        case .invalidField: (.invalidField, true, 400)
        // A client can do nothing about the gateway's own credential or a foreign answer: an internal error to it.
        case .upstreamCredentials: (.upstreamCredentials, true, 500)
        case .upstreamProtocol: (.upstreamProtocol, false, 500)
        case .upstreamInternal: (.upstreamInternal, false, 500)
        case .upstreamUnavailable: (.upstreamUnavailable, false, 503)
        }
    }
}

/// Understands the answers of `/fcm/notification`.
package enum GroupResponseReader {
    /// Reads the key, or why there is none; a `Retry-After` that is a date counts from now, in seconds since 1970.
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

    /// A body that is text; a page for people tells a client nothing.
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

    /// A request that can't be read, or may not be made: 400 `{"error": …}`, or the status that says it all.
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
