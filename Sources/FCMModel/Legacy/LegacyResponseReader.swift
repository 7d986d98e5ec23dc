import NIOCore
import StrictJSON

/// Understands what a legacy upstream answered ("Understanding a legacy upstream" of the protocol page).
///
/// What can't be understood is `upstream_protocol`, never the death of a token (N-UNKNOWN, N-GONE).
package enum LegacyResponseReader {
    /// An answer to 1,000 tokens may hold several members for each of them.
    private static let limits = JSONLimits(maxDepth: 16, maxMembers: 10_000)

    /// Classifies an answer.
    ///
    /// - Parameters:
    ///   - response: the answer.
    ///   - target: whom the request addressed; its order is the order of the outcomes.
    ///   - now: seconds since 1970, for a `Retry-After` that is a date.
    ///   - isIdempotent: whether the request carries an idempotency key, so that the message must not be sent twice
    ///     (R-LOST).
    /// - Returns: what became of each recipient, or why all of them failed.
    package static func read(
        _ response: LegacyResponse,
        for target: Target,
        now: Int,
        isIdempotent: Bool = false
    ) -> UpstreamResult {
        let reading = Self.reading(of: response, for: target, isIdempotent: isIdempotent)
        let delay = response.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
        return UpstreamResult(
            answer: reading.answer,
            retryAfter: Self.isRetryable(reading.answer) ? delay : nil,
            upstreamCode: reading.word ?? String(response.status),
            legacyName: reading.name
        )
    }

    /// An answer's meaning, and the upstream's own word for it where it used one that we know.
    private struct Reading {
        var answer: UpstreamResult.Answer
        var word: String?
        /// The named error that a call failed with as a whole.
        var name: LegacyErrorName?

        init(_ answer: UpstreamResult.Answer) {
            self.answer = answer
        }

        /// A call that failed as a whole.
        init(failed code: OutcomeCode) {
            self.answer = .failed(code)
        }

        /// A call that failed as a whole with a named error.
        init(failedWith wireText: some StringProtocol) {
            let name = LegacyErrorName(wireText: wireText)
            self.init(failed: name?.outcomeCode ?? .upstreamProtocol)
            self.word = name?.rawValue
            self.name = name
        }
    }

    private static func reading(
        of response: LegacyResponse,
        for target: Target,
        isIdempotent: Bool
    ) -> Reading {
        switch response.status {
        case 200: Self.success(response.body, target)
        case 400: Self.badRequest(response.body)
        case 401, 403: Reading(failed: .upstreamCredentials)
        case 500: Reading(failed: .upstreamInternal)
        case 429, 503: Reading(failed: .upstreamUnavailable)
        case 501...599:
            // Unlike 500 and 503 these are not FCM's, and a proxy's may stand for a message that arrived.
            Reading(failed: isIdempotent && !Self.namesError(response.body) ? .outcomeUnknown : .upstreamUnavailable)
        default: Reading(failed: .upstreamProtocol)
        }
    }

    // MARK: Status 200

    private static func success(_ body: ByteBuffer, _ target: Target) -> Reading {
        guard body.readableBytes > 0 else { return Self.emptySuccess(target) }
        guard let root = (try? JSONDocument(parsing: body, limits: Self.limits))?.root else {
            return Self.plainText(String(buffer: body), target)
        }
        if let results = root["results"]?.elements {
            return Self.results(results, target)
        }
        if root["multicast_id"] == nil, let group = Self.group(root) {
            return Reading(.group(group))
        }
        if let text = root["error"]?.string {
            return Reading(failedWith: text)
        }
        if target.recipientCount == 1, let id = root["message_id"].flatMap(Self.messageID) {
            return Reading(.recipients([.accepted(Acceptance(messageID: id))]))
        }
        return Reading(failed: .upstreamProtocol)
    }

    /// A group whose members have all gone answers with nothing (N-GROUP); for anything else that proves nothing.
    private static func emptySuccess(_ target: Target) -> Reading {
        switch target {
        case .notificationKey: Reading(failed: .unregistered)
        case .token, .tokens, .installation, .installations, .topic, .condition:
            Reading(failed: .upstreamProtocol)
        }
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
        case .installation, .installations, .topic, .condition:
            for result in results { outcomes.append(Self.outcome(of: result, sentTo: nil, word: &word)) }
        }
        var reading = Reading(.recipients(outcomes))
        reading.word = word
        return reading
    }

    /// What one entry of T5 says; `word` keeps the first error name of the answer.
    private static func outcome(of result: JSONValue, sentTo token: String?, word: inout String?) -> RecipientOutcome {
        if let text = result["error"]?.string {
            let name = LegacyErrorName(wireText: text)
            word = word ?? name?.rawValue
            return .rejected(Rejection(code: name?.outcomeCode ?? .upstreamProtocol, legacyName: name))
        }
        guard let id = result["message_id"].flatMap(Self.messageID) else { return .rejected(.upstreamProtocol) }
        let replacement = result["registration_id"]?.string.flatMap { $0.isEmpty || $0 == token ? nil : $0 }
        return .accepted(Acceptance(messageID: id, replacementToken: replacement))
    }

    /// A message id is a string or a number (N-SPELLING).
    private static func messageID(_ value: JSONValue) -> String? {
        if let text = value.string { return text.isEmpty ? nil : text }
        return value.number?.text
    }

    private static func group(_ root: JSONValue) -> GroupOutcome? {
        guard let success = root["success"]?.number?.integer, let failure = root["failure"]?.number?.integer,
            success >= 0, failure >= 0
        else { return nil }
        let failed = root["failed_registration_ids"]?.elements?.compactMap(\.string) ?? []
        return GroupOutcome(success: success, failure: failure, failedTokens: failed)
    }

    /// T7 and T8, which upstreams use even for JSON requests that lost their media type.
    private static func plainText(_ text: String, _ target: Target) -> Reading {
        var messageID: String?
        var registrationID: String?
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("Error=") {
                return Reading(failedWith: line.dropFirst("Error=".count))
            } else if line.hasPrefix("id=") {
                messageID = String(line.dropFirst("id=".count))
            } else if line.hasPrefix("registration_id=") {
                registrationID = String(line.dropFirst("registration_id=".count))
            }
        }
        guard let messageID, !messageID.isEmpty, target.recipientCount == 1 else {
            return Reading(failed: .upstreamProtocol)
        }
        let replacement = registrationID.flatMap { $0.isEmpty || target == .token($0) ? nil : $0 }
        return Reading(.recipients([.accepted(Acceptance(messageID: messageID, replacementToken: replacement))]))
    }

    // MARK: Status 400

    /// A 400 speaks JSON or, on the real service, text (N-400).
    private static func badRequest(_ body: ByteBuffer) -> Reading {
        if let text = (try? JSONDocument(parsing: body, limits: Self.limits))?.root["error"]?.string {
            return Reading(failedWith: text)
        }
        let text = Self.trimmed(String(buffer: body))
        if text.hasPrefix("JSON_PARSING_ERROR") {
            return Reading(failed: .malformedJSON)
        }
        if text.hasPrefix("\"data\" key"), text.contains("is a reserved keyword") {
            return Reading(failed: .invalidDataKey)
        }
        if text == "to" || text.hasPrefix("Missing \"registration_ids\" field") {
            return Reading(failed: .invalidTarget)
        }
        if LegacyErrorName(wireText: text) != nil {
            return Reading(failedWith: text)
        }
        return Reading(failed: .invalidField)
    }

    /// Whether a body names one of FCM's errors, as JSON or as text.
    private static func namesError(_ body: ByteBuffer) -> Bool {
        if let text = (try? JSONDocument(parsing: body, limits: Self.limits))?.root["error"]?.string {
            return LegacyErrorName(wireText: text) != nil
        }
        let prefix = "Error="
        guard body.readableBytes <= 64 else { return false }
        let text = Self.trimmed(String(buffer: body))
        return LegacyErrorName(wireText: text.hasPrefix(prefix) ? text.dropFirst(prefix.count) : text) != nil
    }

    private static func trimmed(_ text: String) -> Substring {
        var text = text[...]
        while let last = text.last, last.isWhitespace { text.removeLast() }
        return text.drop(while: \.isWhitespace)
    }

    private static func isRetryable(_ answer: UpstreamResult.Answer) -> Bool {
        switch answer {
        case .failed(let code):
            code.isRetryable
        case .group(let group):
            group.isRetryable
        case .recipients(let outcomes):
            outcomes.contains { outcome in
                if case .rejected(let rejection) = outcome { rejection.code.isRetryable } else { false }
            }
        }
    }
}
