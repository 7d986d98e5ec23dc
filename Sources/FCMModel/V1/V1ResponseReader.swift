import StrictJSON

/// The meaning of an answer to `messages:send`, or of its absence.
package struct V1Reading: Sendable, Hashable {
    /// The answer's meaning for the caller.
    package enum Answer: Sendable, Hashable {
        /// FCM accepted the message under its own id.
        case accepted(messageID: String)
        /// FCM accepted a message for a device group. FCM reports neither an id nor counts (TB-GROUP).
        case group
        case rejected(Rejection)
    }

    /// The answer's meaning for the client of FCM.
    package enum Signal: Sendable, Hashable {
        case none
        /// FCM refused our access token. A fresh token is worth one retry (V-TOKEN).
        case tokenRefused
        /// Our credential or configuration is wrong, and a fresh token does not help.
        case credentialRefused
        /// The project's quota is exhausted, so all calls of the project must wait.
        case projectQuota
        /// One target's quota is exhausted.
        case targetQuota
        /// FCM or the path to FCM failed. The circuit breaker counts this failure.
        case trouble
    }

    package var answer: Answer
    package var signal: Signal
    package var upstreamCode: String
    package var passThrough: SendResult.PassThrough?

    package init(answer: Answer, signal: Signal = .none, upstreamCode: String) {
        self.answer = answer
        self.signal = signal
        self.upstreamCode = upstreamCode
    }

    /// Creates the reading of a call without an answer (TB-TRANSPORT).
    ///
    /// Legacy callers get `Unavailable`, even if FCM may have accepted the message. REST callers get the code, which is
    /// `outcome_unknown` in that case.
    package init(transportFailure code: OutcomeCode, upstreamCode: String) {
        self.init(
            answer: .rejected(Rejection(code: code, legacyName: .unavailable)),
            signal: .trouble,
            upstreamCode: upstreamCode
        )
    }

    /// The outcome for one recipient of a list. An empty answer is valid only for a group, so it becomes
    /// `upstream_protocol`.
    package var outcome: RecipientOutcome {
        switch self.answer {
        case .accepted(let messageID): .accepted(Acceptance(messageID: messageID))
        case .group: .rejected(.upstreamProtocol)
        case .rejected(let rejection): .rejected(rejection)
        }
    }
}

/// Reads the answer of a v1 upstream to one call.
///
/// An answer that can't be understood never retires a token.
package enum V1ResponseReader {
    /// Reads the answer to one call. `kind` is the kind of the request's target. A list has one call for each
    /// recipient.
    ///
    /// - `mayBeGroup`: True if a token may be a device group's key. The answer for a group is an empty object.
    /// - `now`: If `Retry-After` is a date, the delay is counted from `now`, in seconds since 1970.
    /// - `keepsAnswer`: True if the caller speaks v1 too. A refusal's reading then includes FCM's answer (V-FACADE).
    /// - `isIdempotent`: True if the request has an idempotency key. The message must not be sent twice (R-LOST).
    package static func read(
        _ response: UpstreamResponse,
        for kind: Target.Kind,
        mayBeGroup: Bool = false,
        now: Int,
        keepsAnswer: Bool = false,
        isIdempotent: Bool = false
    ) -> V1Reading {
        guard (200...299).contains(response.status) else {
            let body = V1ErrorBody(response.body)
            let delay = response.delay(now: now)
            var reading = Self.refusal(response.status, body, for: kind, delay: delay, isIdempotent: isIdempotent)
            if keepsAnswer, body.hasCode || response.status == 400 {
                let type = response.contentType ?? Reply.json
                let reply = Reply(status: response.status, contentType: type, response.body, retryAfter: delay)
                reading.passThrough = .answer(reply)
            }
            return reading
        }
        return V1Reading(answer: Self.success(response, mayBeGroup: mayBeGroup), upstreamCode: response.statusText)
    }

    /// Reads a 2xx. An answer without content does not prove a delivery (TB-SUCCESS).
    ///
    /// A blank body is never a group's answer, because it may be a proxy's.
    private static func success(_ response: UpstreamResponse, mayBeGroup: Bool) -> V1Reading.Answer {
        let root = response.json()
        if let name = root?["name"]?.string, let id = Self.messageID(in: name) {
            return .accepted(messageID: id)
        }
        return mayBeGroup && root?.members?.count == 0 ? .group : .rejected(Rejection(code: .upstreamProtocol))
    }

    /// Returns the id in `projects/<project>/messages/<id>`. The id may have any form.
    private static func messageID(in name: String) -> String? {
        let bytes = name.utf8.span
        guard Self.stands(Self.projects, in: bytes, at: 0) else { return nil }
        var end = Self.projects.count
        while end < bytes.count, bytes[end] != UInt8(ascii: "/") { end += 1 }
        guard end > Self.projects.count, Self.stands(Self.messages, in: bytes, at: end) else { return nil }
        let text = String(Substring(name.utf8.dropFirst(end + Self.messages.count)))
        return AnswerBounds.isMessageID(text) ? text : nil
    }

    private static let projects = Array("projects/".utf8)
    private static let messages = Array("/messages/".utf8)

    private static func stands(_ part: [UInt8], in bytes: Span<UInt8>, at start: Int) -> Bool {
        guard start + part.count <= bytes.count else { return false }
        for index in part.indices where bytes[start + index] != part[index] { return false }
        return true
    }

    private static func refusal(
        _ status: Int,
        _ body: V1ErrorBody,
        for kind: Target.Kind,
        delay: Int?,
        isIdempotent: Bool
    ) -> V1Reading {
        let cause = V1Classification(status: status, body: body, kind: kind, isIdempotent: isIdempotent)
        return V1Reading(
            answer: .rejected(
                Rejection(
                    code: cause.code,
                    retryAfter: cause.takesDelay ? delay ?? body.retryDelay ?? cause.defaultDelay : nil,
                    limitedBy: cause.signal == .targetQuota || cause.signal == .projectQuota ? .fcm : nil,
                    legacyName: cause.name
                )
            ),
            signal: cause.signal,
            upstreamCode: body.knownWord ?? String(status)
        )
    }
}

/// The cause of a v1 refusal by the table TB-ERRORS. The first matching row applies.
struct V1Classification {
    let name: LegacyErrorName
    /// The name's code, or a more specific code.
    let code: OutcomeCode
    let signal: V1Reading.Signal
    /// True if the answer's delay applies.
    private(set) var takesDelay = false
    /// The seconds to wait if the answer names no delay.
    private(set) var defaultDelay: Int?

    /// Classifies an answer outside 2xx.
    ///
    /// A 5xx that is not FCM's own does not show whether the message arrived. If the message must not be sent twice,
    /// such an answer becomes `outcome_unknown` (R-LOST).
    init(status: Int, body: V1ErrorBody, kind: Target.Kind, isIdempotent: Bool = false) {
        let minute = RetryAfter.afterTooManyRequests
        if body.isProjectQuota {
            // Neither a device nor a topic is at fault, and later sends get the same answer.
            self.init(.unavailable, code: .tenantRateExceeded, delay: minute, signal: .projectQuota)
        } else if case .known(let code) = body.code {
            self.init(code, body, kind)
        } else if status == 400, body.status == RPCStatus.invalidArgument.rawValue, case .absent = body.code {
            self.init(Self.invalidArgument(body, kind))
        } else if status == 429 || body.status == RPCStatus.resourceExhausted.rawValue {
            self.init(.unavailable, delay: minute, signal: .none)
        } else if isIdempotent, (500...599).contains(status), !body.isFailureOfFCM {
            self.init(.internalServerError, code: .outcomeUnknown, signal: .trouble)
        } else {
            self.init(status: status, hasCode: body.hasCode)
        }
    }

    private init(_ code: V1ErrorCode, _ body: V1ErrorBody, _ kind: Target.Kind) {
        switch code {
        case .unregistered: self.init(.notRegistered)
        case .senderIDMismatch: self.init(.mismatchSenderID)
        case .thirdPartyAuthError: self.init(.invalidAPNSCredential)
        case .quotaExceeded:
            // FCM does not say which quota is exhausted. Legacy has one name for topics and another for devices
            // (TB-QUOTA).
            let name: LegacyErrorName =
                switch kind {
                case .topic, .condition: .topicsMessageRateExceeded
                case .token, .tokens, .installation, .installations, .group: .deviceMessageRateExceeded
                }
            self.init(name, delay: RetryAfter.afterTooManyRequests, signal: .targetQuota)
        case .unavailable: self.init(.unavailable, delay: nil, signal: .trouble)
        case .internal, .unspecifiedError: self.init(.internalServerError, delay: nil, signal: .trouble)
        case .invalidArgument: self.init(Self.invalidArgument(body, kind))
        }
    }

    private init(status: Int, hasCode: Bool) {
        switch status {
        case 400:
            self.init(.invalidParameters)
        case 401, 403, 404:
            // The operator must repair this. The caller must neither delete its token nor change its key (TB-OWNAUTH).
            self.init(
                .internalServerError,
                code: .upstreamCredentials,
                // A refusal with an unknown code may concern only the recipient.
                signal: hasCode ? .none : status == 401 ? .tokenRefused : .credentialRefused
            )
        case 500:
            self.init(.internalServerError, delay: nil, signal: .trouble)
        case 501...599:
            self.init(.unavailable, delay: nil, signal: .trouble)
        default:
            self.init(.internalServerError, code: .upstreamProtocol, signal: .none)
        }
    }

    /// Creates the cause of a refusal that does not pass with time.
    private init(_ name: LegacyErrorName, code: OutcomeCode? = nil, signal: V1Reading.Signal = .none) {
        self.name = name
        self.code = code ?? name.outcomeCode
        self.signal = signal
    }

    private init(_ name: LegacyErrorName, code: OutcomeCode? = nil, delay: Int?, signal: V1Reading.Signal) {
        self.init(name, code: code, signal: signal)
        self.takesDelay = true
        self.defaultDelay = delay
    }

    // MARK: INVALID_ARGUMENT

    /// Returns the legacy name for the cause of an `INVALID_ARGUMENT` (TB-INVALID). Reads the answer's fields, and its
    /// texts in lower case.
    ///
    /// If neither shows the cause, returns `InvalidParameters`, because clients delete tokens on `InvalidRegistration`.
    private static func invalidArgument(_ body: V1ErrorBody, _ kind: Target.Kind) -> LegacyErrorName {
        let violations = body.violations.map {
            V1Error.FieldViolation(field: $0.field, description: $0.description.lowercased())
        }
        let texts = [body.message.lowercased()] + violations.map(\.description)
        if violations.contains(where: { $0.field == "message" && $0.description.contains("not set") }) {
            return .missingRegistration
        }
        if Self.mayBlameToken(kind, violations.map(\.field), texts) { return .invalidRegistration }
        if violations.contains(where: { Self.isPackageName($0.field) }) { return .invalidPackageName }
        if violations.contains(where: { $0.field.hasSuffix("android.ttl") }) { return .invalidTTL }
        if texts.contains(where: { $0.hasPrefix("invalid data payload key") }) { return .invalidDataKey }
        if texts.contains(where: { $0.contains("too big") }) { return .messageTooBig }
        return .invalidParameters
    }

    /// True if the answer blames the registration token, or the installation id in its place.
    private static func mayBlameToken(_ kind: Target.Kind, _ fields: [String], _ texts: [String]) -> Bool {
        switch kind {
        case .topic, .condition:
            false
        case .token, .tokens, .group:
            fields.contains("message.token") || texts.contains { $0.contains("registration token") }
        case .installation, .installations:
            fields.contains("message.fid") || texts.contains { $0.contains("registration token") }
        }
    }

    private static func isPackageName(_ field: String) -> Bool {
        field.contains("restricted_package_name") || field.contains("restrictedPackageName")
    }
}

extension SendResult {
    /// The result of one v1 call to a single target.
    ///
    /// v1 reports no counts for a group. The message counts as one success, because two counts of zero would look like
    /// a failure (TB-GROUP).
    package init(_ reading: V1Reading) {
        switch reading.answer {
        case .accepted:
            self.init(
                .recipients([reading.outcome]),
                upstreamCode: reading.upstreamCode,
                passThrough: reading.passThrough
            )
        case .rejected:
            self.init(gathering: [reading])
            self.passThrough = reading.passThrough
        case .group:
            let counts = GroupOutcome(success: 1, failure: 0, failedTokens: [])
            self.init(.group(counts), upstreamCode: reading.upstreamCode)
        }
    }

    /// The result of the calls to a list of recipients, in the order of the recipients.
    ///
    /// If all calls failed for one shared cause, such as an upstream that is down, the send failed as a whole.
    package init(gathering readings: [V1Reading]) {
        let outcomes = readings.map(\.outcome)
        let cause = outcomes.first?.sharedCause
        // The first refusal's upstream code is reported for the whole send.
        let told = outcomes.firstIndex { $0.code != nil } ?? 0
        let code = readings.indices.contains(told) ? readings[told].upstreamCode : "none"
        if let cause, outcomes.allSatisfy({ $0.sharedCause == cause }) {
            self.init(refused: cause, retryAfter: outcomes.longestDelay, upstreamCode: code)
        } else {
            self.init(outcomes, retryAfter: outcomes.longestDelay, upstreamCode: code)
        }
    }
}

extension RecipientOutcome {
    /// The cause, if a whole send may share it. `nil` for a reason with its own legacy name, because a refusal of the
    /// whole send would lose that name.
    fileprivate var sharedCause: OutcomeCode? {
        guard case .rejected(let rejection) = self, rejection.code.isShared, rejection.legacyName == nil else {
            return nil
        }
        return rejection.code
    }
}
