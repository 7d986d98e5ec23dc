/// `/fcm/send`: method, credentials and encoding, then the checks of the encoding.
struct LegacyEndpoint: Sendable {
    static let path = "/fcm/send"
    private static let scheme = "key="
    /// The accepted server keys; an empty set accepts every non-empty key.
    let serverKeys: Set<String>

    func message(in request: ReceivedRequest) throws(Refused) -> (AcceptedMessage, LegacyFormat) {
        guard request.method == "POST" else {
            throw Refused(answer: .methodNotAllowed(allow: "POST"), reason: "the method is \(request.method)")
        }
        if let reason = self.refusal(of: request.header("authorization")) {
            throw Refused(answer: .unauthorized, reason: reason)
        }
        let format = LegacyFormat(contentType: request.header("content-type"))
        do throws(LegacyRefusal) {
            switch format {
            case .json: return (try LegacySendValidator.validate(request.bodyBytes), format)
            case .form: return (try LegacyFormValidator.validate(request.bodyBytes), format)
            }
        } catch {
            let answer = LegacyAnswers(format: format).refusal(error, multicastID: .random())
            throw Refused(answer: answer, reason: error.reason)
        }
    }

    /// Returns why an `Authorization` field is refused; `nil` if it is accepted.
    func refusal(of authorization: String?) -> String? {
        guard let authorization else { return "no Authorization header" }
        guard authorization.hasPrefix(Self.scheme) else { return "Authorization does not start with key=" }
        let key = String(authorization.dropFirst(Self.scheme.count))
        guard !key.isEmpty else { return "the server key is empty" }
        guard self.serverKeys.isEmpty || self.serverKeys.contains(key) else { return "unknown server key" }
        return nil
    }
}

/// The two encodings of `/fcm/send`.
enum LegacyFormat: Sendable, Equatable {
    case json
    case form

    /// The encoding of a media type: `application/json`, in any case and with any parameters, is JSON; any other type,
    /// or none, is a form (L-CT).
    init(contentType: String?) {
        let mediaType = (contentType ?? "").prefix { $0 != ";" }
        let isJSON = mediaType.split(whereSeparator: \.isWhitespace).joined().lowercased() == "application/json"
        self = isJSON ? .json : .form
    }
}
