package import NIOCore
import StrictJSON

/// An error in the v1 facade's form (`google.rpc.Status`). The table of ``OutcomeCode`` assigns an error to each code.
struct V1Error: Sendable, Hashable {
    /// One entry of `google.rpc.BadRequest`: the invalid field, and the reason.
    struct FieldViolation {
        /// The path to the field, such as `message.android.ttl`; empty for the body as a whole.
        var field: String
        var description: String
    }

    enum Delay: Hashable {
        case never
        /// The cause's delay, if the cause has one.
        case named
        /// The cause's delay, or else this many seconds.
        case seconds(Int)
    }

    let status: RPCStatus
    /// FCM's own code. `nil` if Google's front end would answer instead of FCM.
    let code: V1ErrorCode?
    let message: String
    let delay: Delay

    init(_ status: RPCStatus, _ code: V1ErrorCode?, _ message: String, delay: Delay = .never) {
        self.status = status
        self.code = code
        self.message = message
        self.delay = delay
    }

    static var notFound: Self { Self(.notFound, .unregistered, "Requested entity was not found.") }
    static var senderMismatch: Self { Self(.permissionDenied, .senderIDMismatch, "SenderId mismatch") }
    static var invalidArgument: Self {
        Self(.invalidArgument, .invalidArgument, "Request contains an invalid argument.")
    }
    static var badRequest: Self { Self(.invalidArgument, nil, "Request contains an invalid argument.") }
    static var tooManyTopics: Self { Self(.invalidArgument, nil, "The registration follows too many topics.") }
    static var quota: Self { Self(.resourceExhausted, .quotaExceeded, "Quota exceeded.", delay: .seconds(60)) }
    static var unauthenticated: Self {
        Self(.unauthenticated, nil, "Request had invalid authentication credentials.")
    }
    /// A project of another tenant and a project that does not exist must look the same.
    static var permissionDenied: Self { Self(.permissionDenied, nil, "The caller does not have permission") }
    static var thirdPartyAuth: Self {
        Self(.unauthenticated, .thirdPartyAuthError, "Auth error from APNS or Web Push Service")
    }
    /// Also used if FCM refused the gateway's credential. A 401 would make the caller refresh its own key.
    static var `internal`: Self { Self(.internal, .internal, "Internal error encountered.", delay: .named) }
    static var unavailable: Self {
        Self(.unavailable, .unavailable, "The service is currently unavailable.", delay: .seconds(5))
    }
    static var deadlineExceeded: Self {
        Self(.deadlineExceeded, nil, "The message was sent, but no answer came: it may have been delivered.")
    }
    static var aborted: Self {
        Self(.aborted, nil, "The same request is still being served.", delay: .seconds(1))
    }
}

/// The canonical error codes of Google's services (`google.rpc.Code`), and a code that the Instance ID API adds.
package enum RPCStatus: String, Sendable, Hashable {
    case invalidArgument = "INVALID_ARGUMENT"
    case unauthenticated = "UNAUTHENTICATED"
    case permissionDenied = "PERMISSION_DENIED"
    case notFound = "NOT_FOUND"
    case aborted = "ABORTED"
    case resourceExhausted = "RESOURCE_EXHAUSTED"
    case `internal` = "INTERNAL"
    case unavailable = "UNAVAILABLE"
    case deadlineExceeded = "DEADLINE_EXCEEDED"
    case unknown = "UNKNOWN"
    case tooManyTopics = "TOO_MANY_TOPICS"

    var httpStatus: Int {
        switch self {
        case .invalidArgument, .tooManyTopics: 400
        case .unauthenticated: 401
        case .permissionDenied: 403
        case .notFound: 404
        case .aborted: 409
        case .resourceExhausted: 429
        case .internal, .unknown: 500
        case .unavailable: 503
        case .deadlineExceeded: 504
        }
    }
}

/// The known error codes of FCM itself in a v1 answer (`FcmError`).
///
/// FCM may add codes at any time. An unknown code is classified by the HTTP status.
enum V1ErrorCode: String {
    case invalidArgument = "INVALID_ARGUMENT"
    case unregistered = "UNREGISTERED"
    case senderIDMismatch = "SENDER_ID_MISMATCH"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case unavailable = "UNAVAILABLE"
    case `internal` = "INTERNAL"
    case thirdPartyAuthError = "THIRD_PARTY_AUTH_ERROR"
    case unspecifiedError = "UNSPECIFIED_ERROR"

    /// Recognises a code on the wire, including the older name of ``thirdPartyAuthError``.
    init?(wireText: String) {
        if wireText == "APNS_AUTH_ERROR" {
            self = .thirdPartyAuthError
        } else {
            self.init(rawValue: wireText)
        }
    }
}

/// The body of a v1 refusal (`google.rpc.Status`). All members are absent for any other body.
package struct V1ErrorBody {
    /// FCM's own code. The front end's refusals have none.
    enum Code {
        case absent
        case unknown
        case known(V1ErrorCode)
    }

    private(set) var code = Code.absent
    private(set) var status: String?
    /// Google's word for the cause, such as `SERVICE_DISABLED`.
    package private(set) var reason: String?
    private(set) var isProjectQuota = false
    /// The seconds to wait, if the body names a delay.
    private(set) var retryDelay: Int?
    private let error: JSONValue?

    package init(_ body: ByteBuffer) {
        self.error = (try? JSONDocument(parsing: body))?.root["error"]
        self.status = self.error?["status"]?.string
        for detail in self.error?["details"]?.elements.map(Array.init) ?? [] {
            self.read(detail)
        }
    }

    /// Reads an entry of `details`. Entries are identified by the end of their type, and have no fixed order.
    private mutating func read(_ detail: JSONValue) {
        guard let type = detail["@type"]?.string else { return }
        if Self.names(type, "google.firebase.fcm.v1.FcmError") {
            guard let text = detail["errorCode"]?.string else { return }
            if case .known = self.code { return }
            self.code = V1ErrorCode(wireText: text).map(Code.known) ?? .unknown
        } else if Self.names(type, "google.rpc.ErrorInfo") {
            self.reason = detail["reason"]?.string
            self.isProjectQuota = self.isProjectQuota || self.reason == "RATE_LIMIT_EXCEEDED"
        } else if Self.names(type, "google.rpc.RetryInfo") {
            self.retryDelay = detail["retryDelay"]?.string.flatMap(V1Duration.init)
                .map { RetryAfter.bounded($0.roundedUp) }
        }
    }

    var hasCode: Bool {
        switch self.code {
        case .absent: false
        case .known, .unknown: true
        }
    }

    var knownWord: String? {
        if self.isProjectQuota { return "RATE_LIMIT_EXCEEDED" }
        return if case .known(let code) = self.code { code.rawValue } else { nil }
    }

    /// True if the body is an error in Google's form. FCM itself then reports that it failed.
    ///
    /// A proxy's page is not such an error. Neither is an exceeded deadline, because it does not show whether FCM
    /// accepted the message.
    var isFailureOfFCM: Bool {
        self.hasCode || self.status.map { $0 != RPCStatus.deadlineExceeded.rawValue } ?? false
    }

    var violations: [V1Error.FieldViolation] {
        var violations: [V1Error.FieldViolation] = []
        for detail in self.error?["details"]?.elements.map(Array.init) ?? [] {
            guard let type = detail["@type"]?.string, Self.names(type, "google.rpc.BadRequest"),
                let entries = detail["fieldViolations"]?.elements
            else { continue }
            for entry in entries {
                let field = entry["field"]?.string ?? ""
                violations.append(V1Error.FieldViolation(field: field, description: entry["description"]?.string ?? ""))
            }
        }
        return violations
    }

    package var message: String { self.error?["message"]?.string ?? "" }

    private static func names(_ type: String, _ name: String) -> Bool {
        let end = type.utf8.suffix(name.utf8.count)
        let before = type.utf8.dropLast(name.utf8.count).last
        return end.elementsEqual(name.utf8) && (before == nil || before == UInt8(ascii: "/"))
    }
}
