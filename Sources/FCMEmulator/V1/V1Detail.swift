/// One entry of an error's `details`.
enum V1Detail: Sendable, Equatable {
    /// What became of the message.
    case fcmError(String)
    /// What the Apple service said.
    case apnsError(status: Int, reason: String)
    /// Which fields are wrong.
    case badRequest([V1Violation])
    /// Which quota is used up.
    case quotaFailure(subject: String, description: String)
    /// Why the front end refused.
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
