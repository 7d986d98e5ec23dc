/// An error of the v1 protocol (`google.rpc.Status`).
struct V1Failure: RequestRefusal, Sendable, Equatable {
    let code: Int
    let status: String
    let message: String
    let details: [V1Detail]

    var answer: Answer {
        let details =
            self.details.isEmpty ? "" : #","details":["# + self.details.map(\.json).joined(separator: ",") + "]"
        let message = JSONValue.quoted(self.message)
        return .json(
            #"{"error":{"code":\#(self.code),"message":\#(message),"status":"\#(self.status)"\#(details)}}"#,
            status: self.code
        )
    }

    /// The text for the journal: the message and the invalid fields.
    var reason: String {
        let violations = self.details.flatMap { detail -> [V1Violation] in
            guard case .badRequest(let violations) = detail else { return [] }
            return violations
        }
        let fields = violations.filter { $0.description != self.message }
            .map { [$0.field, $0.description].compactMap { $0 }.joined(separator: ": ") }
        return ([self.message] + fields).joined(separator: "; ")
    }
}

// MARK: The front end, which does not know messages

extension V1Failure {
    /// The body is not JSON, or not of the request's type; has no FcmError.
    static func malformed(_ violations: [V1Violation]) -> Self {
        Self(
            code: 400,
            status: "INVALID_ARGUMENT",
            message: violations.map(\.description).joined(separator: "\n"),
            details: [.badRequest(violations)]
        )
    }

    static func notJSON(_ reason: String) -> Self {
        .malformed([V1Violation(field: nil, description: "Invalid JSON payload received. \(reason)")])
    }

    static func unauthenticated(_ reason: String) -> Self {
        Self(
            code: 401,
            status: "UNAUTHENTICATED",
            message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or "
                + "other valid authentication credential.",
            details: [.errorInfo(reason: reason, metadata: ["service": "fcm.googleapis.com"])]
        )
    }

    static let insufficientScopes = Self(
        code: 403,
        status: "PERMISSION_DENIED",
        message: "Request had insufficient authentication scopes.",
        details: [.errorInfo(reason: "ACCESS_TOKEN_SCOPE_INSUFFICIENT", metadata: ["service": "fcm.googleapis.com"])]
    )

    static func permissionDenied(project: String) -> Self {
        Self(
            code: 403,
            status: "PERMISSION_DENIED",
            message: "Permission 'cloudmessaging.messages.create' denied on resource "
                + "'//cloudresourcemanager.googleapis.com/projects/\(project)' (or it may not exist).",
            details: [.errorInfo(reason: "IAM_PERMISSION_DENIED", metadata: ["service": "fcm.googleapis.com"])]
        )
    }

    static let noSuchProject = Self(
        code: 404,
        status: "NOT_FOUND",
        message: "Requested entity was not found.",
        details: []
    )
}

// MARK: The message

extension V1Failure {
    static func invalid(_ field: String?, _ description: String, message: String? = nil) -> Self {
        let violations = field.map { [V1Violation(field: $0, description: description)] }
        return Self(
            code: 400,
            status: "INVALID_ARGUMENT",
            message: message ?? "Request contains an invalid argument.",
            details: [.fcmError("INVALID_ARGUMENT")] + (violations.map { [.badRequest($0)] } ?? [])
        )
    }

    static let noRecipient: Self = {
        let text = "Recipient of the message is not set."
        return .invalid("message", text, message: text)
    }()

    static let invalidToken: Self = .invalid(
        "message.token",
        "Invalid registration token",
        message: "The registration token is not a valid FCM registration token"
    )

    static func reservedKey(_ key: String, field: String = "message.data") -> Self {
        .invalid(field, "Invalid data payload key: \(key)", message: "Invalid data payload key: \(key)")
    }

    /// The payload is too large.
    static let tooBig: Self = .invalid("message", "Message is too big", message: "Android message is too big")
}

/// The failures that a token can select by its own text.
extension V1Failure {
    /// Names, besides the legacy protocol's, that have a meaning of their own in `ERROR_<name>`.
    static let scriptedNames = [
        "INVALID_ARGUMENT", "UNREGISTERED", "SENDER_ID_MISMATCH", "QUOTA_EXCEEDED", "UNAVAILABLE", "INTERNAL",
        "UNSPECIFIED_ERROR", "THIRD_PARTY_AUTH_ERROR", "APNS_AUTH_ERROR", "RATE_LIMIT_EXCEEDED", "SERVICE_DISABLED",
        "ACCESS_TOKEN_EXPIRED",
    ]

    /// The failure that a token selects by a name.
    ///
    /// The name is an `errorCode`, a `reason` of the front end, or a name of the legacy protocol with its meaning in
    /// v1. Any other name becomes an unknown `errorCode` with status 500.
    init(scripted name: String) {
        switch name {
        case "RATE_LIMIT_EXCEEDED", "SERVICE_DISABLED", "ACCESS_TOKEN_EXPIRED":
            self = .frontEnd(name)
        case LegacyErrorName.missingRegistration.rawValue:
            self = .noRecipient
        case LegacyErrorName.invalidRegistration.rawValue:
            self = .invalidToken
        case LegacyErrorName.invalidPackageName.rawValue:
            self = .invalid("message.android.restricted_package_name", "The package name does not match the token's.")
        case LegacyErrorName.invalidTTL.rawValue:
            self = .invalid("message.android.ttl", "Invalid ttl")
        case LegacyErrorName.invalidDataKey.rawValue:
            self = .reservedKey("from")
        case LegacyErrorName.messageTooBig.rawValue:
            self = .tooBig
        case "INVALID_ARGUMENT", LegacyErrorName.invalidParameters.rawValue:
            self = .invalid(nil, "")
        default:
            self = .delivery(name)
        }
    }

    private static func delivery(_ name: String) -> Self {
        switch name {
        case "UNREGISTERED", LegacyErrorName.notRegistered.rawValue:
            return .fcm(404, "NOT_FOUND", "Requested entity was not found.", "UNREGISTERED")
        case "SENDER_ID_MISMATCH", LegacyErrorName.mismatchSenderID.rawValue:
            return .fcm(403, "PERMISSION_DENIED", "SenderId mismatch", "SENDER_ID_MISMATCH")
        case "QUOTA_EXCEEDED", LegacyErrorName.deviceMessageRateExceeded.rawValue,
            LegacyErrorName.topicsMessageRateExceeded.rawValue:
            let quota = V1Detail.quotaFailure(subject: "device", description: "Message rate exceeded")
            return .fcm(429, "RESOURCE_EXHAUSTED", "Quota exceeded", "QUOTA_EXCEEDED", quota)
        case "UNAVAILABLE", LegacyErrorName.unavailable.rawValue:
            return .fcm(503, "UNAVAILABLE", "The service is currently unavailable.", "UNAVAILABLE")
        case "INTERNAL", LegacyErrorName.internalServerError.rawValue:
            return .fcm(500, "INTERNAL", "Internal error encountered.", "INTERNAL")
        case "THIRD_PARTY_AUTH_ERROR", LegacyErrorName.invalidAPNsCredential.rawValue:
            let apns = V1Detail.apnsError(status: 403, reason: "InvalidProviderToken")
            let message = "Auth error from APNS or Web Push Service"
            return .fcm(401, "UNAUTHENTICATED", message, "THIRD_PARTY_AUTH_ERROR", apns)
        case "APNS_AUTH_ERROR":
            return .fcm(401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service", name)
        default:
            return .fcm(500, "UNKNOWN", "Unknown error", name)
        }
    }

    private static func frontEnd(_ reason: String) -> Self {
        let metadata = ["service": "fcm.googleapis.com"]
        switch reason {
        case "RATE_LIMIT_EXCEEDED":
            return Self(
                code: 429,
                status: "RESOURCE_EXHAUSTED",
                message: "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per minute'",
                details: [
                    .errorInfo(reason: reason, metadata: ["quota_metric": "fcm.googleapis.com/send_requests"])
                ]
            )
        case "SERVICE_DISABLED":
            return Self(
                code: 403,
                status: "PERMISSION_DENIED",
                message: "Firebase Cloud Messaging API has not been used in this project before or it is disabled.",
                details: [.errorInfo(reason: reason, metadata: metadata)]
            )
        default:
            return .unauthenticated(reason)
        }
    }

    private static func fcm(
        _ code: Int,
        _ status: String,
        _ message: String,
        _ errorCode: String,
        _ detail: V1Detail? = nil
    ) -> Self {
        let details = [V1Detail.fcmError(errorCode)] + [detail].compactMap { $0 }
        return Self(code: code, status: status, message: message, details: details)
    }
}

/// One entry of an error's `details`.
enum V1Detail: Sendable, Equatable {
    case fcmError(String)
    case apnsError(status: Int, reason: String)
    case badRequest([V1Violation])
    case quotaFailure(subject: String, description: String)
    case errorInfo(reason: String, metadata: [String: String])

    var json: String {
        switch self {
        case .fcmError(let code):
            return Self.object("google.firebase.fcm.v1.FcmError", [("errorCode", JSONValue.quoted(code))])
        case .apnsError(let status, let reason):
            return Self.object(
                "google.firebase.fcm.v1.ApnsError",
                [("statusCode", String(status)), ("reason", JSONValue.quoted(reason))]
            )
        case .badRequest(let violations):
            let list = "[" + violations.map(\.json).joined(separator: ",") + "]"
            return Self.object("google.rpc.BadRequest", [("fieldViolations", list)])
        case .quotaFailure(let subject, let description):
            let violation =
                "{\"subject\":\(JSONValue.quoted(subject)),\"description\":\(JSONValue.quoted(description))}"
            return Self.object("google.rpc.QuotaFailure", [("violations", "[" + violation + "]")])
        case .errorInfo(let reason, let metadata):
            let pairs = metadata.sorted { $0.key < $1.key }
                .map { JSONValue.quoted($0.key) + ":" + JSONValue.quoted($0.value) }
            return Self.object(
                "google.rpc.ErrorInfo",
                [
                    ("reason", JSONValue.quoted(reason)), ("domain", JSONValue.quoted("googleapis.com")),
                    ("metadata", "{" + pairs.joined(separator: ",") + "}"),
                ]
            )
        }
    }

    /// An object of a type; the members' values are JSON.
    private static func object(_ type: String, _ members: [(String, String)]) -> String {
        let pairs = members.map { JSONValue.quoted($0) + ":" + $1 }
        return #"{"@type":"type.googleapis.com/\#(type)","# + pairs.joined(separator: ",") + "}"
    }
}

/// An invalid field and the reason (`google.rpc.BadRequest.FieldViolation`).
struct V1Violation: Sendable, Equatable {
    /// Path of the field in `snake_case`; `nil` if the text is not JSON.
    let field: String?
    let description: String

    var json: String {
        let field = self.field.map { #""field":"# + JSONValue.quoted($0) + "," } ?? ""
        return "{" + field + #""description":"# + JSONValue.quoted(self.description) + "}"
    }
}
