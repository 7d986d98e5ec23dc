package import StrictJSON

/// The reason that a request is not carried out. A decoder, a rule of the gateway, a store or FCM may refuse a request.
///
/// If the refusal is the whole answer, a function throws it as a typed error. Otherwise the refusal is part of a
/// result: the failure of a `Result`, or a case `refused`. Such a result holds more than the refusal, for example the
/// tenant's quotas or FCM's own code. Only functions named `refusal(of:)` return an optional. They check whether a
/// request would be refused.
///
/// Each surface writes a refusal in its own dialect, by the code's row in ``OutcomeCode``. A ``Rejection`` concerns a
/// single recipient.
package struct Refusal: Error, Sendable, Hashable {
    /// An invalid field of a body.
    package struct Field: Sendable, Hashable {
        package var code: OutcomeCode
        /// A JSON pointer (RFC 6901) for REST, a dotted path such as `message.android.ttl` for v1.
        package var path: String
        /// Advice for a developer. It never repeats a value.
        package var detail: String

        package init(_ code: OutcomeCode, at path: String, _ detail: String) {
            self.code = code
            self.path = path
            self.detail = detail
        }
    }

    /// The position at which a body is not JSON of the allowed form.
    package struct Position: Sendable, Hashable {
        package var offset: Int
        package var pointer: String
    }

    package var code: OutcomeCode
    /// The cause in this case. If `nil`, the code's own explanation is shown.
    ///
    /// Never contains a token, key or payload.
    package var detail: String?
    /// Seconds.
    package var retryAfter: Int?
    /// The owner of the exhausted quota. Only rate codes have an owner.
    package var limitedBy: Rejection.LimitSource?
    package var limit: String?
    package var fields: [Field] = []
    package var position: Position?
    package var legacyName: LegacyErrorName?
    /// True if the body's form is wrong: its JSON, a name or a type. False if a value is wrong. Google's front end
    /// refuses a v1 request with a wrong form before FCM sees it, and without an `FcmError`.
    package var isSyntactic = false

    /// Creates a refusal. `field` names the one invalid field at the top level of a REST body.
    package init(
        _ code: OutcomeCode,
        _ detail: String? = nil,
        retryAfter: Int? = nil,
        limitedBy: Rejection.LimitSource? = nil,
        limit: String? = nil,
        field: String? = nil,
        legacyName: LegacyErrorName? = nil
    ) {
        self.code = code
        self.detail = detail
        self.retryAfter = retryAfter
        self.limitedBy = limitedBy
        self.limit = limit
        self.legacyName = legacyName
        if let field { self.fields = [Field(code, at: "/\(field)", detail ?? code.title)] }
    }

    package init(_ error: JSONParseError) {
        self.init(OutcomeCode(error.code), error.reason)
        self.position = Position(offset: error.offset, pointer: error.pointer.description)
        self.isSyntactic = true
    }

    /// Returns the refusal of a body that is valid JSON but not an object.
    package static func noObject(at offset: Int) -> Refusal {
        var refusal = Refusal(.malformedJSON, "The body must be a JSON object")
        refusal.position = Position(offset: offset, pointer: "")
        return refusal
    }

    /// Creates a refusal for invalid fields. The refusal has the code of the first field.
    package init(_ fields: [Field]) {
        self.init(fields.first?.code ?? .invalidField, fields.first?.detail)
        self.fields = fields
    }

    package init(_ rejection: Rejection) {
        self.init(rejection.code, retryAfter: rejection.retryAfter, limitedBy: rejection.limitedBy)
        self.legacyName = rejection.legacyName
    }

    package var rejection: Rejection {
        Rejection(code: self.code, retryAfter: self.retryAfter, limitedBy: self.limitedBy, legacyName: self.legacyName)
    }

    package var legacyErrorName: LegacyErrorName { self.legacyName ?? self.code.legacyErrorName }
}

/// The outcome of a message for one recipient.
package enum RecipientOutcome: Sendable, Hashable {
    case accepted(Acceptance)
    case rejected(Rejection)

    package static func rejected(_ code: OutcomeCode) -> RecipientOutcome {
        .rejected(Rejection(code: code))
    }

    package var code: OutcomeCode? {
        switch self {
        case .accepted: nil
        case .rejected(let rejection): rejection.code
        }
    }

    package var isRetryable: Bool { self.code?.isRetryable == true }
}

extension Sequence<RecipientOutcome> {
    /// Returns the longest delay, in seconds, among the rejections that can be retried.
    var longestDelay: Int? {
        var longest: Int?
        for case .rejected(let rejection) in self where rejection.code.isRetryable {
            if let delay = rejection.retryAfter { longest = Swift.max(longest ?? 0, delay) }
        }
        return longest
    }
}

/// FCM's acceptance of a message for one recipient.
package struct Acceptance: Sendable, Hashable {
    package var messageID: String
    package var replacementToken: String?

    package init(messageID: String, replacementToken: String? = nil) {
        self.messageID = messageID
        self.replacementToken = replacementToken
    }
}

/// The refusal of a message for one recipient.
package struct Rejection: Sendable, Hashable {
    /// The owner of a quota.
    package enum LimitSource: String, Sendable, Hashable {
        case gateway, fcm
    }

    package var code: OutcomeCode
    /// Seconds.
    package var retryAfter: Int?
    package var limitedBy: LimitSource?
    /// The legacy protocol's name for the reason, if the name says more than the code. For example, `InvalidTtl` is one
    /// of several invalid fields, and `InvalidApnsCredential` is one of several credentials.
    package private(set) var legacyName: LegacyErrorName?

    /// Creates a rejection. Stores the legacy name only if it differs from the code's.
    package init(
        code: OutcomeCode,
        retryAfter: Int? = nil,
        limitedBy: LimitSource? = nil,
        legacyName: LegacyErrorName? = nil
    ) {
        self.code = code
        self.retryAfter = retryAfter
        self.limitedBy = limitedBy
        let name = legacyName?.current
        self.legacyName = name == code.legacyErrorName ? nil : name
    }

    package var legacyErrorName: LegacyErrorName { self.legacyName ?? self.code.legacyErrorName }
}

extension OutcomeCode {
    init(_ code: JSONParseError.Code) {
        self =
            switch code {
            case .malformed: .malformedJSON
            case .duplicateKey: .duplicateKey
            case .tooDeep: .tooDeep
            case .tooManyMembers: .tooManyMembers
            }
    }
}
