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
        /// None of the tokens is usable.
        case noValidTokens = "no_valid_tokens"
        /// The key is damaged or foreign.
        case groupKeyInvalid = "group_key_invalid"
        /// FCM does not take the request.
        case invalidField = "invalid_field"
        /// FCM does not take the gateway's own credential, or there is none to show.
        case upstreamCredentials = "upstream_credentials"
        /// FCM failed.
        case upstreamInternal = "upstream_internal"
        /// FCM can't be reached, gave no answer or is overloaded.
        case upstreamUnavailable = "upstream_unavailable"
        /// The answer can't be understood.
        case upstreamProtocol = "upstream_protocol"
    }

    package var kind: Kind
    /// Seconds to wait before a retry, if known.
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
    package var isDefinite: Bool {
        switch self.kind {
        case .groupExists, .groupNotFound, .noValidTokens, .groupKeyInvalid, .invalidField, .upstreamCredentials: true
        case .upstreamInternal, .upstreamUnavailable, .upstreamProtocol: false
        }
    }

    /// The failure in the words of the REST contract.
    package var outcomeCode: OutcomeCode {
        switch self.kind {
        case .groupExists: .groupConflict
        case .groupNotFound: .notFound
        case .noValidTokens: .noValidTokens
        case .groupKeyInvalid, .upstreamProtocol: .upstreamProtocol
        case .invalidField: .invalidField
        case .upstreamCredentials: .upstreamCredentials
        case .upstreamInternal: .upstreamInternal
        case .upstreamUnavailable: .upstreamUnavailable
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
        let delay = response.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
        switch response.status {
        case 200:
            guard let key = Self.root(response)?["notification_key"]?.string, AnswerBounds.isToken(key) else {
                return .failure(GroupFailure(.upstreamProtocol))
            }
            return .success(key)
        case 400: return .failure(Self.refusal(response))
        case 401, 403: return .failure(GroupFailure(.upstreamCredentials))
        case 429:
            return .failure(
                GroupFailure(.upstreamUnavailable, retryAfter: delay ?? RetryAfter.afterTooManyRequests)
            )
        case 500: return .failure(GroupFailure(.upstreamInternal, retryAfter: delay))
        case 501...599: return .failure(GroupFailure(.upstreamUnavailable, retryAfter: delay))
        default: return .failure(GroupFailure(.upstreamProtocol))
        }
    }

    private static func refusal(_ response: UpstreamResponse) -> GroupFailure {
        let text = Self.root(response)?["error"]?.string ?? Self.plainText(response)
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
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || (0x09...0x0D).contains(byte) }
        func endsLine(_ byte: UInt8) -> Bool { (0x0A...0x0D).contains(byte) }
        let bytes = response.body.readableBytesView
        guard !bytes.contains(UInt8(ascii: "<")) else { return nil }
        return String(decoding: bytes.drop(while: isBlank).prefix { !endsLine($0) }, as: UTF8.self)
    }

    private static func root(_ response: UpstreamResponse) -> JSONValue? {
        (try? JSONDocument(parsing: response.body))?.root
    }
}

/// Writes the answers of `/fcm/notification`.
package enum GroupReplyWriter {
    /// The answer of FCM.
    ///
    /// A client can do nothing about the gateway's own credential or a foreign answer: both are an internal error to
    /// it.
    package static func reply(to result: GroupResult) -> Reply {
        switch result.answer {
        case .success(let key):
            return Reply(status: 200, member: "notification_key", key)
        case .failure(let failure):
            let code = failure.outcomeCode
            switch failure.kind {
            case .groupExists, .groupNotFound, .noValidTokens, .groupKeyInvalid, .invalidField:
                return Reply(status: 400, member: "error", failure.text ?? failure.kind.rawValue, code: code)
            case .upstreamCredentials, .upstreamInternal, .upstreamProtocol:
                let name = LegacyErrorName.internalServerError.rawValue
                return Reply(status: 500, member: "error", name, retryAfter: failure.retryAfter, code: code)
            case .upstreamUnavailable:
                return Self.unavailable(code, retryAfter: failure.retryAfter)
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

    /// FCM or the gateway can't serve the request now.
    package static func unavailable(_ code: OutcomeCode, retryAfter: Int?) -> Reply {
        let name = LegacyErrorName.unavailable.rawValue
        return Reply(status: 503, member: "error", name, retryAfter: retryAfter, code: code)
    }
}
