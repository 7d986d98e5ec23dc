package import StrictJSON

/// Why a request is not carried out, wherever that is decided: by a decoder, a rule of the gateway's, a store or FCM.
///
/// Each surface writes it in its own dialect, by the code's row in ``OutcomeCode``. What a single recipient of a message
/// meets is a ``Rejection``.
package struct Refusal: Error, Sendable, Hashable {
    /// What is wrong with one field of a body.
    package struct Field: Sendable, Hashable {
        package var code: OutcomeCode
        /// A JSON pointer (RFC 6901) for REST, a dotted path such as `message.android.ttl` for v1.
        package var path: String
        /// What a developer should change; never repeats a value.
        package var detail: String

        package init(_ code: OutcomeCode, at path: String, _ detail: String) {
            self.code = code
            self.path = path
            self.detail = detail
        }
    }

    /// Where a body is no JSON of the allowed form.
    package struct Position: Sendable, Hashable {
        /// In bytes.
        package var offset: Int
        /// A JSON pointer.
        package var pointer: String
    }

    package var code: OutcomeCode
    /// What is wrong this time; without it the code's own explanation is shown.
    ///
    /// Never holds a token, key or payload.
    package var detail: String?
    /// Seconds to wait before a repeat, where somebody named them.
    package var retryAfter: Int?
    /// Whose limit was hit, for the rate codes.
    package var limitedBy: Rejection.LimitSource?
    /// The name of the gateway's limit that was hit.
    package var limit: String?
    /// The fields at fault.
    package var fields: [Field] = []
    package var position: Position?
    /// The legacy protocol's name for the cause, where it says more than the code.
    package var legacyName: LegacyErrorName?
    /// Whether the body's form is wrong (its JSON, a name, a type) and no value: v1's front end refuses that before FCM
    /// sees it, and without an `FcmError`.
    package var isSyntactic = false

    /// A refusal; a field is the one REST field at fault, by its name at the top of the body.
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

    /// A body that is no JSON of the allowed form.
    package init(_ error: JSONParseError) {
        self.init(OutcomeCode(error.code), error.reason)
        self.position = Position(offset: error.offset, pointer: error.pointer.description)
        self.isSyntactic = true
    }

    /// A body that is valid JSON but no object.
    package static func noObject(at offset: Int) -> Refusal {
        var refusal = Refusal(.malformedJSON, "The body must be a JSON object")
        refusal.position = Position(offset: offset, pointer: "")
        return refusal
    }

    /// Fields at fault; the first one's code stands for all.
    package init(_ fields: [Field]) {
        self.init(fields.first?.code ?? .invalidField, fields.first?.detail)
        self.fields = fields
    }

    /// A request whose only recipient was refused.
    package init(_ rejection: Rejection) {
        self.init(
            rejection.code,
            retryAfter: rejection.retryAfter,
            limitedBy: rejection.limitedBy,
            legacyName: rejection.legacyName
        )
    }

    /// What each recipient of the request meets.
    package var rejection: Rejection {
        Rejection(
            code: self.code,
            retryAfter: self.retryAfter,
            limitedBy: self.limitedBy,
            legacyName: self.legacyName
        )
    }

    /// What the legacy protocol calls the cause.
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
