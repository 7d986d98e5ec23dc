import StrictJSON

/// Writes what became of a legacy request as the legacy protocol answers it, whichever upstream served it (TB-*).
package struct LegacyReplyWriter: Sendable {
    private let shape: LegacyReply.Shape
    private let format: LegacyFormat
    private let localErrors: [Int: LegacyErrorName]
    private let multicastID: Int

    /// A writer of the answer to one request.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - format: what the client sent, and so gets.
    ///   - multicastID: a positive integer below 2⁵³, used where the shape has one.
    package init(answering request: LegacySendRequest, format: LegacyFormat, multicastID: Int) {
        self.init(
            shape: LegacyReply.Shape(target: request.target),
            format: format,
            localErrors: request.localErrors,
            multicastID: multicastID
        )
    }

    /// A writer of answers of one shape.
    ///
    /// - Parameters:
    ///   - shape: the shape of a JSON answer; a form's answer has but one.
    ///   - format: what the client sent, and so gets.
    ///   - localErrors: entries that failed without being sent, by index.
    ///   - multicastID: a positive integer below 2⁵³, used where the shape has one.
    package init(
        shape: LegacyReply.Shape,
        format: LegacyFormat,
        localErrors: [Int: LegacyErrorName] = [:],
        multicastID: Int
    ) {
        self.shape = shape
        self.format = format
        self.localErrors = localErrors
        self.multicastID = multicastID
    }

    /// Answers with the outcomes of what was sent.
    ///
    /// - Parameter outcomes: one for each recipient that did not fail locally, in the request's order; a missing one
    ///   counts as an internal error.
    /// - Returns: the answer.
    package func reply(with outcomes: [RecipientOutcome]) -> LegacyReply {
        switch (self.format, self.shape) {
        case (.form, _): self.line(outcomes.first ?? .rejected(.internalError))
        case (.json, .single): self.single(outcomes.first ?? .rejected(.internalError))
        case (.json, .results(let count)): self.results(outcomes, count: count)
        }
    }

    /// Answers with a device group's counts (TB-GROUP).
    package func reply(with group: GroupOutcome) -> LegacyReply {
        switch self.format {
        case .form:
            return group.success > 0 || group.failure == 0
                ? LegacyReply(status: 200, text: "id=0") : .formFailure(.unavailable)
        case .json:
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("success", group.success)
            writer.member("failure", group.failure)
            if !group.failedTokens.isEmpty {
                writer.key("failed_registration_ids")
                writer.beginArray()
                for token in group.failedTokens { writer.string(token) }
                writer.endArray()
            }
            writer.endObject()
            return LegacyReply(status: 200, json: writer)
        }
    }

    /// Answers a request that was refused as a whole: every recipient that did not fail locally meets the same.
    ///
    /// A key that may not send is 401 like any other bad credential; a repeat with another body under one idempotency
    /// key is 400, one that comes while the first is running 503.
    package func reply(refusing rejection: Rejection) -> LegacyReply {
        if rejection.code == .unauthenticated || rejection.code == .forbidden {
            return .unauthorized(rejection.code)
        }
        if rejection.code == .idempotencyConflict {
            return self.whole(.invalidParameters, status: 400, retryAfter: nil, code: rejection.code)
        }
        if rejection.code == .idempotencyInProgress {
            let retryAfter = rejection.retryAfter ?? 1
            return self.whole(.unavailable, status: 503, retryAfter: retryAfter, code: rejection.code)
        }
        let count = if case .results(let count) = self.shape { count - self.localErrors.count } else { 1 }
        return self.reply(with: Array(repeating: .rejected(rejection), count: max(0, count)))
    }

    // MARK: Shapes

    /// T6: a topic or a condition.
    private func single(_ outcome: RecipientOutcome) -> LegacyReply {
        switch outcome {
        case .accepted(let acceptance):
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("message_id", LegacyMessageNumber.number(for: acceptance.messageID))
            writer.endObject()
            return LegacyReply(status: 200, json: writer)
        case .rejected(let rejection):
            let name = rejection.legacyErrorName
            // Without results, a bad request is one as a whole.
            let status = name == .invalidParameters ? 400 : 200
            return self.whole(
                name,
                status: status,
                retryAfter: self.retryAfter([outcome]),
                code: rejection.code
            )
        }
    }

    /// T5: one result for each recipient.
    private func results(_ given: [RecipientOutcome], count: Int) -> LegacyReply {
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
        writer.key("results")
        writer.beginArray()
        var sent = outcomes.makeIterator()
        var code: OutcomeCode?
        for index in 0..<count {
            writer.beginObject()
            if let name = self.localErrors[index] {
                writer.member("error", name.rawValue)
                code = code ?? name.outcomeCode
            } else {
                let outcome = sent.next() ?? .rejected(.internalError)
                Self.write(outcome, to: &writer)
                if case .rejected(let rejection) = outcome { code = code ?? rejection.code }
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return LegacyReply(status: 200, json: writer, retryAfter: self.retryAfter(outcomes), code: code)
    }

    private static func write(_ outcome: RecipientOutcome, to writer: inout JSONWriter) {
        switch outcome {
        case .accepted(let acceptance):
            writer.member("message_id", acceptance.messageID)
            if let token = acceptance.replacementToken { writer.member("registration_id", token) }
        case .rejected(let rejection):
            writer.member("error", rejection.legacyErrorName.rawValue)
        }
    }

    /// T7 and T8: a form's answer (TB-PLAIN), with the token that replaces the one used where a legacy upstream named it.
    private func line(_ outcome: RecipientOutcome) -> LegacyReply {
        switch outcome {
        case .accepted(let acceptance):
            LegacyReply(
                status: 200,
                text: "id=\(acceptance.messageID)"
                    + (acceptance.replacementToken.map { "\nregistration_id=\($0)" } ?? "")
            )
        case .rejected(let rejection):
            .formFailure(
                rejection.legacyErrorName,
                retryAfter: self.retryAfter([outcome]),
                code: rejection.code
            )
        }
    }

    /// One error for the request as a whole.
    private func whole(_ name: LegacyErrorName, status: Int, retryAfter: Int?, code: OutcomeCode) -> LegacyReply {
        switch self.format {
        case .form:
            return LegacyReply(status: status, text: "Error=\(name.rawValue)", retryAfter: retryAfter, code: code)
        case .json:
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("error", name.rawValue)
            writer.endObject()
            return LegacyReply(status: status, json: writer, retryAfter: retryAfter, code: code)
        }
    }

    /// The longest delay among what can be repeated (TB-RETRYAFTER).
    ///
    /// None once a recipient succeeded: a popular client resends to everybody when it sees the header.
    private func retryAfter(_ outcomes: some Sequence<RecipientOutcome>) -> Int? {
        var longest: Int?
        for outcome in outcomes {
            guard case .rejected(let rejection) = outcome else { return nil }
            guard rejection.code.isRetryable, let delay = rejection.retryAfter else { continue }
            longest = max(longest ?? 0, delay)
        }
        return longest
    }
}
