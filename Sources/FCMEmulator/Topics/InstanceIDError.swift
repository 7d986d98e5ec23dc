/// An error of the Instance ID API.
struct InstanceIDError: Error, Equatable {
    /// Status of an answer that is this error as a whole.
    let status: Int
    /// The text of `error`.
    let text: String

    var answer: Answer {
        .json(#"{"error":\#(JSONValue.quoted(self.text))}"#, status: self.status)
    }

    static let unauthorized = Self(status: 401, text: "Unauthorized")
    static let forbidden = Self(status: 403, text: "PERMISSION_DENIED")
    static let tooManyTopics = Self(status: 400, text: "TOO_MANY_TOPICS")

    /// The request is wrong in itself.
    static func invalid(_ text: String) -> Self {
        Self(status: 400, text: "INVALID_ARGUMENT: \(text)")
    }

    /// The error that a device asks for by its own text; other names than the API's and those of sends stay as they are.
    init(scripted name: String) {
        switch name {
        case "NOT_FOUND", "UNREGISTERED", LegacyErrorName.notRegistered.rawValue:
            self.init(status: 404, text: "NOT_FOUND")
        case "INVALID_ARGUMENT", LegacyErrorName.invalidRegistration.rawValue,
            LegacyErrorName.missingRegistration.rawValue, LegacyErrorName.invalidParameters.rawValue:
            self.init(status: 400, text: "INVALID_ARGUMENT")
        case "PERMISSION_DENIED", "SENDER_ID_MISMATCH", LegacyErrorName.mismatchSenderID.rawValue:
            self = .forbidden
        case "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", LegacyErrorName.deviceMessageRateExceeded.rawValue,
            LegacyErrorName.topicsMessageRateExceeded.rawValue:
            self.init(status: 429, text: "RESOURCE_EXHAUSTED")
        case "DEADLINE_EXCEEDED", "UNAVAILABLE", LegacyErrorName.unavailable.rawValue:
            self.init(status: 503, text: "DEADLINE_EXCEEDED")
        case "INTERNAL", LegacyErrorName.internalServerError.rawValue:
            self.init(status: 500, text: "INTERNAL")
        default:
            self.init(status: name == "TOO_MANY_TOPICS" ? 400 : 500, text: name)
        }
    }

    private init(status: Int, text: String) {
        self.status = status
        self.text = text
    }
}
