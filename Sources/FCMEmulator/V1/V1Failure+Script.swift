/// The failures a token can ask for by its own text.
extension V1Failure {
    /// Names beyond those of the legacy protocol that `ERROR_<name>` gives a meaning of its own.
    static let scriptedNames = [
        "INVALID_ARGUMENT", "UNREGISTERED", "SENDER_ID_MISMATCH", "QUOTA_EXCEEDED", "UNAVAILABLE", "INTERNAL",
        "UNSPECIFIED_ERROR", "THIRD_PARTY_AUTH_ERROR", "APNS_AUTH_ERROR", "RATE_LIMIT_EXCEEDED", "SERVICE_DISABLED",
        "ACCESS_TOKEN_EXPIRED",
    ]

    /// The failure a token asks for by a name.
    ///
    /// The name is an `errorCode`, a `reason` of the front end, or a name of the legacy protocol, in the meaning it has
    /// in v1. Any other name becomes an unknown `errorCode` with status 500.
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

    /// Failures of delivery, which carry an FcmError.
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

    /// Failures before the message was looked at, which carry no FcmError.
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
