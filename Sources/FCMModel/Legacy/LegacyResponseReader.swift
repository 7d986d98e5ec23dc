import NIOCore
import StrictJSON

/// Reads the answer of a legacy upstream ("Understanding a legacy upstream" of the protocol page).
///
/// An answer that can't be understood becomes `upstream_protocol` and never retires a token (N-UNKNOWN, N-GONE).
package enum LegacyResponseReader {
    /// The limits fit an answer to 1,000 tokens with several members for each token.
    private static let limits = JSONLimits(maxDepth: 16, maxMembers: 10_000)
    /// The maximum size of a plain-text answer, which has two lines. A larger body is taken for an HTML page.
    private static let maxTextBytes = 16 * 1024
    /// The number of bytes of a 400's text that are compared with known texts.
    private static let maxReasonBytes = 1_024

    /// Reads the outcome of each recipient, in the target's order, or the reason that all recipients failed.
    ///
    /// If `Retry-After` is a date, the delay is counted from `now`, in seconds since 1970. If `isIdempotent` is true,
    /// the request has an idempotency key and its message must not be sent twice (R-LOST).
    package static func read(
        _ response: UpstreamResponse,
        for target: Target,
        now: Int,
        isIdempotent: Bool = false
    ) -> SendResult {
        let reading = Self.reading(of: response, for: target, isIdempotent: isIdempotent)
        let ownDelay = response.status == 429 ? RetryAfter.afterTooManyRequests : nil
        let delay = response.delay(now: now) ?? ownDelay
        let code = reading.word ?? response.statusText
        switch reading.meaning {
        case .recipients(let outcomes):
            return SendResult(outcomes, retryAfter: delay, upstreamCode: code)
        case .group(var group):
            group.retryAfter = group.isRetryable ? delay : nil
            return SendResult(.group(group), upstreamCode: code)
        case .failed(let cause):
            return SendResult(refused: cause, retryAfter: delay, upstreamCode: code, legacyName: reading.name)
        }
    }

    /// An answer's meaning, and the upstream's own error name if that name is known.
    private struct Reading {
        enum Meaning {
            case recipients([RecipientOutcome])
            case group(GroupOutcome)
            case failed(OutcomeCode)
        }

        var meaning: Meaning
        var word: String?
        var name: LegacyErrorName?

        init(_ meaning: Meaning) {
            self.meaning = meaning
        }

        init(failed code: OutcomeCode) {
            self.meaning = .failed(code)
        }

        init(failedWith wireText: some StringProtocol) {
            let name = LegacyErrorName(wireText: wireText)
            self.init(failed: name?.outcomeCode ?? .upstreamProtocol)
            self.word = name?.rawValue
            self.name = name
        }
    }

    private static func reading(of response: UpstreamResponse, for target: Target, isIdempotent: Bool) -> Reading {
        switch response.status {
        case 200: Self.success(response, target)
        case 400: Self.badRequest(response)
        case 401, 403: Reading(failed: .upstreamCredentials)
        case 500: Reading(failed: .upstreamInternal)
        case 429, 503: Reading(failed: .upstreamUnavailable)
        case 501...599:
            // FCM itself sends only 500 and 503. Any other 5xx may come from a proxy after the message has arrived.
            Reading(failed: isIdempotent && !Self.namesError(response) ? .outcomeUnknown : .upstreamUnavailable)
        default: Reading(failed: .upstreamProtocol)
        }
    }

    // MARK: Status 200

    private static func success(_ response: UpstreamResponse, _ target: Target) -> Reading {
        guard response.body.readableBytes > 0 else {
            // An empty answer means that a group has no members left (N-GROUP). For other targets it proves nothing.
            return Reading(failed: target.kind == .group ? .unregistered : .upstreamProtocol)
        }
        guard let root = response.json(Self.limits) else { return Self.plainText(response.body, target) }
        if let results = root["results"]?.elements { return Self.results(results, target) }
        if root["multicast_id"] == nil, let success = root["success"]?.number?.integer,
            let failure = root["failure"]?.number?.integer
        {
            return Self.group(root, success: success, failure: failure)
        }
        if let text = root["error"]?.string { return Reading(failedWith: text) }
        if target.recipientCount == 1, let id = root["message_id"].flatMap(Self.messageID) {
            return Reading(.recipients([.accepted(Acceptance(messageID: id))]))
        }
        return Reading(failed: .upstreamProtocol)
    }

    private static func results(_ results: JSONElements, _ target: Target) -> Reading {
        guard results.count == target.recipientCount else { return Reading(failed: .upstreamProtocol) }
        var outcomes: [RecipientOutcome] = []
        outcomes.reserveCapacity(results.count)
        var word: String?
        switch target {
        case .tokens(let tokens):
            for (result, token) in zip(results, tokens) {
                outcomes.append(Self.outcome(of: result, sentTo: token, word: &word))
            }
        case .token(let token), .notificationKey(let token):
            for result in results { outcomes.append(Self.outcome(of: result, sentTo: token, word: &word)) }
        case .installation, .installations, .topic, .condition, .deviceGroup:
            for result in results { outcomes.append(Self.outcome(of: result, sentTo: nil, word: &word)) }
        }
        var reading = Reading(.recipients(outcomes))
        reading.word = word
        return reading
    }

    /// The outcome in one entry of T5. `word` is the first error name of the answer.
    private static func outcome(of result: JSONValue, sentTo token: String?, word: inout String?) -> RecipientOutcome {
        if let text = result["error"]?.string {
            let name = LegacyErrorName(wireText: text)
            word = word ?? name?.rawValue
            return .rejected(Rejection(code: name?.outcomeCode ?? .upstreamProtocol, legacyName: name))
        }
        guard let id = result["message_id"].flatMap(Self.messageID) else { return .rejected(.upstreamProtocol) }
        return Self.acceptance(id, registrationID: result["registration_id"]?.string, sentTo: token)
    }

    /// A message id is a string or a number (N-SPELLING).
    private static func messageID(_ value: JSONValue) -> String? {
        let text = value.string ?? value.number?.text
        return text.flatMap { AnswerBounds.isMessageID($0) ? $0 : nil }
    }

    /// An accepted message. A registration id is a replacement only if it differs from the token of the request.
    private static func acceptance(_ id: String, registrationID: String?, sentTo token: String?) -> RecipientOutcome {
        guard let registrationID, !registrationID.isEmpty, registrationID != token else {
            return .accepted(Acceptance(messageID: id))
        }
        guard AnswerBounds.isToken(registrationID) else { return .rejected(.upstreamProtocol) }
        return .accepted(Acceptance(messageID: id, replacementToken: registrationID))
    }

    private static func group(_ root: JSONValue, success: Int, failure: Int) -> Reading {
        let counts = 0...AnswerBounds.maxMembers
        let failed = root["failed_registration_ids"]?.elements?.compactMap(\.string) ?? []
        guard counts.contains(success), counts.contains(failure), counts.contains(failed.count),
            failed.allSatisfy(AnswerBounds.isToken)
        else { return Reading(failed: .upstreamProtocol) }
        return Reading(.group(GroupOutcome(success: success, failure: failure, failedTokens: failed)))
    }

    /// Reads a plain-text answer (T7, T8). Upstreams also send plain text if a JSON request lacks its media type.
    ///
    /// The lines are split as bytes, because splitting a text into characters is slow on an event loop.
    private static func plainText(_ body: ByteBuffer, _ target: Target) -> Reading {
        guard body.readableBytes <= Self.maxTextBytes else { return Reading(failed: .upstreamProtocol) }
        var messageID: String?
        var registrationID: String?
        let lines = body.readableBytesView.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        for line in lines {
            if let name = Self.value(of: "Error=", in: line) {
                return Reading(failedWith: name)
            } else if let id = Self.value(of: "id=", in: line) {
                messageID = id
            } else if let id = Self.value(of: "registration_id=", in: line) {
                registrationID = id
            }
        }
        guard let messageID, AnswerBounds.isMessageID(messageID), target.recipientCount == 1 else {
            return Reading(failed: .upstreamProtocol)
        }
        let token: String? = if case .token(let token) = target { token } else { nil }
        return Reading(.recipients([Self.acceptance(messageID, registrationID: registrationID, sentTo: token)]))
    }

    /// Returns the text after a name at the start of a line. Returns `nil` if the line starts differently. Invalid
    /// UTF-8 becomes characters that no id contains.
    private static func value(of name: String, in line: ByteBufferView) -> String? {
        guard line.starts(with: name.utf8) else { return nil }
        return String(decoding: line.dropFirst(name.utf8.count), as: UTF8.self)
    }

    // MARK: Status 400

    /// Reads a 400. Its body is JSON or, from the real service, text (N-400).
    private static func badRequest(_ response: UpstreamResponse) -> Reading {
        if let text = response.json(Self.limits)?["error"]?.string { return Reading(failedWith: text) }
        let text = Self.reason(in: response.body)
        if text.hasPrefix("JSON_PARSING_ERROR") { return Reading(failed: .malformedJSON) }
        if text.hasPrefix("\"data\" key"), text.contains("is a reserved keyword") {
            return Reading(failed: .invalidDataKey)
        }
        if text == "to" || text.hasPrefix("Missing \"registration_ids\" field") {
            return Reading(failed: .invalidTarget)
        }
        return LegacyErrorName(wireText: text) == nil ? Reading(failed: .invalidField) : Reading(failedWith: text)
    }

    private static func namesError(_ response: UpstreamResponse) -> Bool {
        if let text = response.json(Self.limits)?["error"]?.string { return LegacyErrorName(wireText: text) != nil }
        let prefix = "Error="
        guard response.body.readableBytes <= 64 else { return false }
        let text = Self.reason(in: response.body)[...]
        return LegacyErrorName(wireText: text.hasPrefix(prefix) ? text.dropFirst(prefix.count) : text) != nil
    }

    private static func reason(in body: ByteBuffer) -> String {
        var bytes = body.readableBytesView.drop(while: \.isBlank).prefix(Self.maxReasonBytes)
        while let last = bytes.last, last.isBlank { bytes = bytes.dropLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
