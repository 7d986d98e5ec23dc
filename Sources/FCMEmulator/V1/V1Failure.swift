/// An error of the v1 protocol (`google.rpc.Status`).
struct V1Failure: Error, Sendable, Equatable {
    /// The HTTP status.
    let code: Int
    /// The name of the status.
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

    /// For the journal: the message, and the fields that are wrong.
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

// MARK: The front end, which knows nothing of messages

extension V1Failure {
    /// The body is no JSON, or not of the request's type: no FcmError.
    static func malformed(_ violations: [V1Violation]) -> Self {
        Self(
            code: 400,
            status: "INVALID_ARGUMENT",
            message: violations.map(\.description).joined(separator: "\n"),
            details: [.badRequest(violations)]
        )
    }

    /// The body is no JSON.
    static func notJSON(_ reason: String) -> Self {
        .malformed([V1Violation(field: nil, description: "Invalid JSON payload received. \(reason)")])
    }

    /// The access token is missing or worthless.
    static func unauthenticated(_ reason: String) -> Self {
        Self(
            code: 401,
            status: "UNAUTHENTICATED",
            message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or "
                + "other valid authentication credential.",
            details: [.errorInfo(reason: reason, metadata: ["service": "fcm.googleapis.com"])]
        )
    }

    /// The access token is not for sending.
    static let insufficientScopes = Self(
        code: 403,
        status: "PERMISSION_DENIED",
        message: "Request had insufficient authentication scopes.",
        details: [.errorInfo(reason: "ACCESS_TOKEN_SCOPE_INSUFFICIENT", metadata: ["service": "fcm.googleapis.com"])]
    )

    /// The account may not send for this project.
    static func permissionDenied(project: String) -> Self {
        Self(
            code: 403,
            status: "PERMISSION_DENIED",
            message: "Permission 'cloudmessaging.messages.create' denied on resource "
                + "'//cloudresourcemanager.googleapis.com/projects/\(project)' (or it may not exist).",
            details: [.errorInfo(reason: "IAM_PERMISSION_DENIED", metadata: ["service": "fcm.googleapis.com"])]
        )
    }

    /// There is no such project.
    static let noSuchProject = Self(
        code: 404,
        status: "NOT_FOUND",
        message: "Requested entity was not found.",
        details: []
    )
}

// MARK: The message

extension V1Failure {
    /// A field's value is wrong.
    ///
    /// - Parameters:
    ///   - field: its path; nil tells nothing but the message.
    ///   - description: what is wrong with it.
    ///   - message: for the error as a whole; the usual empty phrase if nil.
    /// - Returns: the failure, with the FcmError `INVALID_ARGUMENT`.
    static func invalid(_ field: String?, _ description: String, message: String? = nil) -> Self {
        let violations = field.map { [V1Violation(field: $0, description: description)] }
        return Self(
            code: 400,
            status: "INVALID_ARGUMENT",
            message: message ?? "Request contains an invalid argument.",
            details: [.fcmError("INVALID_ARGUMENT")] + (violations.map { [.badRequest($0)] } ?? [])
        )
    }

    /// The message addresses nobody.
    static let noRecipient: Self = {
        let text = "Recipient of the message is not set."
        return .invalid("message", text, message: text)
    }()

    /// The token was not made by the service.
    static let invalidToken: Self = .invalid(
        "message.token",
        "Invalid registration token",
        message: "The registration token is not a valid FCM registration token"
    )

    /// A data key is reserved.
    static func reservedKey(_ key: String, field: String = "message.data") -> Self {
        .invalid(field, "Invalid data payload key: \(key)", message: "Invalid data payload key: \(key)")
    }

    /// The payload has too many bytes.
    static let tooBig: Self = .invalid("message", "Message is too big", message: "Android message is too big")
}
