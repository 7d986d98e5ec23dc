import Crypto
import NIOCore
import StrictJSON

/// Writes the answer to one request in the legacy protocol, for any upstream (TB-*).
package struct LegacyReplyWriter: Sendable {
    /// The shape of the answer to a JSON request. The answer to a form has a single shape.
    package enum Shape: Sendable, Hashable {
        /// T5: one result for each recipient.
        case results(count: Int)
        /// T6: a single `error` or `message_id`, for topics and conditions.
        case single

        package init(target: Target) {
            switch target {
            case .topic, .condition: self = .single
            case .token, .tokens, .installation, .installations, .notificationKey, .deviceGroup:
                self = .results(count: target.recipientCount)
            }
        }
    }

    private let shape: Shape
    private let format: LegacyFormat
    private let localErrors: [Int: LegacyErrorName]
    private let multicastID: Int

    /// Creates a writer for a decoded request. The multicast id is a positive integer below 2⁵³.
    package init(answering request: LegacySendRequest, format: LegacyFormat, multicastID: Int) {
        let shape = Shape(target: request.target)
        self.init(shape: shape, format: format, localErrors: request.localErrors, multicastID: multicastID)
    }

    package init(shape: Shape, format: LegacyFormat, localErrors: [Int: LegacyErrorName] = [:], multicastID: Int) {
        self.shape = shape
        self.format = format
        self.localErrors = localErrors
        self.multicastID = multicastID
    }

    // MARK: Requests that were sent

    /// Answers with one outcome for each recipient that did not fail locally, in the request's order. A missing outcome
    /// counts as an internal error.
    package func reply(with outcomes: [RecipientOutcome]) -> Reply {
        switch (self.format, self.shape) {
        case (.form, _): self.line(outcomes.first ?? .rejected(.internalError))
        case (.json, .single): self.single(outcomes.first ?? .rejected(.internalError))
        case (.json, .results(let count)): self.results(outcomes, count: count)
        }
    }

    /// Answers with a device group's counts (TB-GROUP).
    package func reply(with group: GroupOutcome) -> Reply {
        switch self.format {
        case .form:
            return group.success > 0 || group.failure == 0
                ? Reply(status: 200, text: "id=0") : Self.formFailure(.unavailable)
        case .json:
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("success", group.success)
            writer.member("failure", group.failure)
            if !group.failedTokens.isEmpty { writer.member("failed_registration_ids", group.failedTokens) }
            writer.endObject()
            return Reply(json: writer)
        }
    }

    /// Answers a valid request that was refused as a whole. Every recipient that did not fail locally gets the same
    /// error.
    ///
    /// A key without the right to send gets 401, like any other bad credential. An idempotency key that was used for
    /// another request gets 400. A key whose first request is still running gets 503.
    package func reply(refusing rejection: Rejection) -> Reply {
        switch rejection.code {
        case .unauthenticated, .forbidden:
            return Self.unauthorized(rejection.code)
        case .idempotencyConflict:
            return self.whole(.invalidParameters, status: 400, retryAfter: nil, code: rejection.code)
        case .idempotencyInProgress:
            return self.whole(.unavailable, status: 503, retryAfter: rejection.retryAfter ?? 1, code: rejection.code)
        default:
            return self.replyToAll(rejection)
        }
    }

    // MARK: Requests that were refused before sending

    /// Answers a request that can't be read, has an invalid value, or is not allowed (T4).
    ///
    /// - A 401 is plain text, because clients check only its status.
    /// - A refused form gets one line of text, with status 200 for most errors.
    /// - A JSON request whose body is not a JSON object gets a 400 with a text.
    /// - A JSON request with an invalid value gets a 400 with `{"error":"InvalidParameters"}` and the reason.
    /// - A JSON request with any other error of T9 gets status 200 and the target's shape.
    package func reply(to refusal: Refusal) -> Reply {
        let name = refusal.legacyErrorName
        switch refusal.code {
        case .unauthenticated, .forbidden, .auditUnavailable:
            return Self.unauthorized(refusal.code)
        case .unsupportedMediaType:
            return Reply(status: 415, text: refusal.detail ?? refusal.code.title, code: refusal.code)
        case _ where self.format == .form:
            return Self.formFailure(name, code: refusal.code)
        case .malformedJSON:
            return Reply(status: 400, text: "JSON_PARSING_ERROR: \(refusal.detail ?? "")\n", code: refusal.code)
        case _ where name == .invalidParameters:
            let reason = refusal.detail ?? refusal.code.title
            return Reply(status: 400, member: "error", name.rawValue, reason: reason, code: refusal.code)
        default:
            return self.replyToAll(Rejection(code: refusal.code, legacyName: refusal.legacyName))
        }
    }

    package static func overloaded(retryAfter: Int) -> Reply {
        Reply(status: 503, text: "Service Unavailable", retryAfter: retryAfter, code: .overloaded)
    }

    /// Returns the same answer for credentials that are missing, malformed, unknown or insufficient (T4).
    static func unauthorized(_ code: OutcomeCode) -> Reply {
        Reply(status: 401, text: "Unauthorized", code: code)
    }

    // MARK: Shapes

    private func replyToAll(_ rejection: Rejection) -> Reply {
        let count = if case .results(let count) = self.shape { count - self.localErrors.count } else { 1 }
        return self.reply(with: Array(repeating: .rejected(rejection), count: max(0, count)))
    }

    private func single(_ outcome: RecipientOutcome) -> Reply {
        switch outcome {
        case .accepted(let acceptance):
            return Reply(ByteBuffer(string: #"{"message_id":\#(Self.messageNumber(acceptance.messageID))}"#))
        case .rejected(let rejection):
            let name = rejection.legacyErrorName
            // An answer without results reports a bad request by its status.
            let status = name == .invalidParameters ? 400 : 200
            return self.whole(name, status: status, retryAfter: self.retryAfter([outcome]), code: rejection.code)
        }
    }

    /// Returns the number for the v1 id of a message to a topic (TB-TOPICID). An id that is a positive 63-bit integer
    /// is returned unchanged. For any other id, the number is derived from the id's SHA-256. That number is the same
    /// every time, and below 2⁵³ so that it fits the number types of old clients.
    private static func messageNumber(_ id: String) -> Int {
        if id.utf8.first != UInt8(ascii: "0"), id.utf8.count <= 19, let number = Int(digits: id) { return number }
        let prefix = SHA256.hash(data: Array(id.utf8)).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return max(1, Int(prefix % (1 << 53)))
    }

    private func results(_ given: [RecipientOutcome], count: Int) -> Reply {
        let outcomes = given.prefix(max(0, count - self.localErrors.count))
        var success = 0
        var canonical = 0
        for case .accepted(let acceptance) in outcomes {
            success += 1
            canonical += acceptance.replacementToken == nil ? 0 : 1
        }
        var writer = JSONWriter(reservingCapacity: 128 + 64 * count)
        writer.beginObject()
        writer.member("multicast_id", self.multicastID)
        writer.member("success", success)
        writer.member("failure", count - success)
        writer.member("canonical_ids", canonical)
        writer.beginArray("results")
        var sent = outcomes.makeIterator()
        var code: OutcomeCode?
        for index in 0..<count {
            writer.beginObject()
            if let name = self.localErrors[index] {
                writer.member("error", name.rawValue)
                code = code ?? name.outcomeCode
            } else {
                switch sent.next() ?? .rejected(.internalError) {
                case .accepted(let acceptance):
                    writer.member("message_id", acceptance.messageID)
                    if let token = acceptance.replacementToken { writer.member("registration_id", token) }
                case .rejected(let rejection):
                    writer.member("error", rejection.legacyErrorName.rawValue)
                    code = code ?? rejection.code
                }
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return Reply(json: writer, retryAfter: self.retryAfter(outcomes), code: code)
    }

    /// Answers a form with one outcome (T7, T8, TB-PLAIN). If a legacy upstream named a replacement for the token, the
    /// answer includes the replacement.
    private func line(_ outcome: RecipientOutcome) -> Reply {
        switch outcome {
        case .accepted(let acceptance):
            let replacement = acceptance.replacementToken.map { "\nregistration_id=\($0)" } ?? ""
            return Reply(status: 200, text: "id=\(acceptance.messageID)\(replacement)")
        case .rejected(let rejection):
            let name = rejection.legacyErrorName
            return Self.formFailure(name, retryAfter: self.retryAfter([outcome]), code: rejection.code)
        }
    }

    /// Answers with `Error=` and a name. The status is 200, except for the two errors with a status of their own
    /// (TB-PLAIN).
    private static func formFailure(
        _ name: LegacyErrorName,
        retryAfter: Int? = nil,
        code: OutcomeCode? = nil
    ) -> Reply {
        let code = code ?? name.outcomeCode
        return Reply(status: name.formStatus, text: "Error=\(name.rawValue)", retryAfter: retryAfter, code: code)
    }

    private func whole(_ name: LegacyErrorName, status: Int, retryAfter: Int?, code: OutcomeCode) -> Reply {
        switch self.format {
        case .form: Reply(status: status, text: "Error=\(name.rawValue)", retryAfter: retryAfter, code: code)
        case .json: Reply(status: status, member: "error", name.rawValue, retryAfter: retryAfter, code: code)
        }
    }

    /// Returns the longest delay among the retryable rejections (TB-RETRYAFTER).
    ///
    /// Returns `nil` if any recipient succeeded. A popular client resends to all recipients when it sees the header.
    private func retryAfter(_ outcomes: some Collection<RecipientOutcome>) -> Int? {
        outcomes.contains { $0.code == nil } ? nil : outcomes.longestDelay
    }
}
