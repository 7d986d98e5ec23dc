package import FCMModel
import GatewayCore
package import HTTPTypes
import StrictJSON

/// A refusal on its way to a caller as problem details (RFC 9457).
package struct Problem: Error, Sendable, Hashable {
    /// The kind, which fixes status and title.
    package var code: OutcomeCode
    /// What is wrong this time; without it the code's own explanation is shown.
    ///
    /// Never holds a token, key or payload.
    package var detail: String?
    /// The fields at fault.
    package var errors: [FieldProblem] = []
    /// Where in the body the fault is, in bytes.
    package var offset: Int?
    /// Where in the body the fault is, as a JSON pointer.
    package var pointer: String?
    /// Seconds to wait before a repeat.
    package var retryAfter: Int?
    /// Whose limit was hit.
    package var limitedBy: Rejection.LimitSource?
    /// The names of the gateway's limits that were hit.
    package var violatedPolicies: [String] = []
    /// The message's id, where there is one.
    package var messageID: String?
    /// The methods that are allowed, for `method_not_allowed`.
    package var allowedMethods: [String] = []
    /// The answer's status, where it is not the one that the code usually has.
    package var ownStatus: HTTPResponse.Status?

    /// A problem.
    package init(_ code: OutcomeCode, _ detail: String? = nil) {
        self.code = code
        self.detail = detail
    }

    /// A body that is no JSON of the allowed form.
    init(_ error: JSONParseError) {
        let code: OutcomeCode =
            switch error.code {
            case .malformed: .malformedJSON
            case .duplicateKey: .duplicateKey
            case .tooDeep: .tooDeep
            case .tooManyMembers: .tooManyMembers
            }
        self.init(code, error.reason)
        self.offset = error.offset
        self.pointer = error.pointer.description
    }

    /// Fields at fault; the first one's code stands for all.
    init(_ problems: [FieldProblem]) {
        self.init(problems.first?.code ?? .invalidField, problems.first?.detail)
        self.errors = problems
    }

    /// A send that was stopped as a whole.
    init(_ refusal: SendRefusal, messageID: String) {
        self.init(refusal.code, refusal.detail)
        self.retryAfter = refusal.retryAfter
        self.limitedBy = refusal.limitedBy
        self.violatedPolicies = refusal.limitScope.map { [$0.rawValue] } ?? []
        self.messageID = messageID
        if let field = refusal.field {
            self.errors = [
                FieldProblem(
                    code: refusal.code,
                    pointer: JSONPointer().appending(field),
                    detail: refusal.detail ?? refusal.code.title
                )
            ]
        }
    }

    /// A request that was not looked at further, so that it has no message.
    init(_ refusal: SendRefusal) {
        self.init(refusal.code, refusal.detail)
        self.retryAfter = refusal.retryAfter
    }

    /// A single recipient that was refused.
    init(_ rejection: Rejection, messageID: String? = nil) {
        self.init(rejection.code)
        self.retryAfter = rejection.retryAfter
        self.limitedBy = rejection.limitedBy
        self.messageID = messageID
    }

    /// A device group that is not as a caller wants it.
    init(_ obstacle: GroupObstacle) {
        self.init(obstacle.code, obstacle.detail)
        self.retryAfter = obstacle.retryAfter
        self.limitedBy = obstacle.code == .tenantRateExceeded ? .gateway : nil
    }

    /// Trouble inside the gateway.
    init(_ error: GatewayError) {
        switch error.code {
        case .storeUnavailable, .overloaded, .cancelled: self.init(.overloaded, error.message)
        case .notFound: self.init(.notFound, error.message)
        case .conflict: self.init(.conflict, error.message)
        case .auditUnavailable: self.init(.auditUnavailable, error.message)
        case .invalid: self.init(.invalidField, error.message)
        }
    }

    /// The answer's status.
    var status: HTTPResponse.Status { self.ownStatus ?? self.code.httpStatus }

    /// The delay that goes into `Retry-After`: 429 and 503 always name one.
    var retryAfterHeader: Int? {
        if let retryAfter = self.retryAfter { return retryAfter }
        return self.status == .tooManyRequests || self.status == .serviceUnavailable ? Self.defaultRetryAfter : nil
    }

    /// What is told of a payload over its limit.
    static func messageTooBigDetail(payloadBytes: Int, limit: Int) -> String {
        "The payload has \(payloadBytes) bytes; at most \(limit) are allowed for this target"
    }

    /// Seconds to wait where nobody named a delay.
    private static let defaultRetryAfter = 5
}
