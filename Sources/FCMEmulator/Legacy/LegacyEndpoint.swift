/// `/fcm/send`: method, credentials and encoding, then the checks of the encoding.
struct LegacyEndpoint: Sendable {
    /// The path it is served at.
    static let path = "/fcm/send"

    private static let scheme = "key="

    /// Server keys let in; empty lets in every key that is not empty.
    let serverKeys: Set<String>

    /// Checks one request.
    func verdict(on request: ReceivedRequest) -> LegacyVerdict {
        guard request.method == "POST" else {
            return .refused(.methodNotAllowed(allow: "POST"), reason: "the method is \(request.method)")
        }
        if let reason = self.refusal(of: request.header("authorization")) {
            return .refused(.unauthorized, reason: reason)
        }
        let format = LegacyFormat(contentType: request.header("content-type"))
        do throws(LegacyRefusal) {
            switch format {
            case .json: return .accepted(try LegacySendValidator.validate(request.bodyBytes), format)
            case .form: return .accepted(try LegacyFormValidator.validate(request.bodyBytes), format)
            }
        } catch {
            return .refused(LegacyAnswers(format: format).refusal(error, multicastID: .random()), reason: error.reason)
        }
    }

    /// Why an `Authorization` field is refused; nil where it is not.
    func refusal(of authorization: String?) -> String? {
        guard let authorization else { return "no Authorization header" }
        guard authorization.hasPrefix(Self.scheme) else { return "Authorization does not start with key=" }
        let key = String(authorization.dropFirst(Self.scheme.count))
        guard !key.isEmpty else { return "the server key is empty" }
        guard self.serverKeys.isEmpty || self.serverKeys.contains(key) else { return "unknown server key" }
        return nil
    }
}
