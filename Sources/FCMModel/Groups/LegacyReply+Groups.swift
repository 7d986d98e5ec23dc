import StrictJSON

extension LegacyReply {
    /// What a client of `/fcm/notification` gets to see of FCM's answer.
    ///
    /// A client can do nothing about the gateway's own credential or a foreign answer: both are an internal error to it.
    package init(_ result: GroupResult) {
        switch result.answer {
        case .success(let key):
            self.init(status: 200, member: "notification_key", key)
        case .failure(let failure):
            switch failure.kind {
            case .groupExists, .groupNotFound, .noValidTokens, .groupKeyInvalid, .invalidField:
                self.init(
                    status: 400,
                    member: "error",
                    failure.text ?? failure.kind.rawValue,
                    code: failure.outcomeCode
                )
            case .upstreamCredentials, .upstreamInternal, .upstreamProtocol:
                self.init(
                    status: 500,
                    member: "error",
                    LegacyErrorName.internalServerError.rawValue,
                    retryAfter: failure.retryAfter,
                    code: failure.outcomeCode
                )
            case .upstreamUnavailable:
                self.init(
                    status: 503,
                    member: "error",
                    LegacyErrorName.unavailable.rawValue,
                    retryAfter: failure.retryAfter,
                    code: failure.outcomeCode
                )
            }
        }
    }

    /// What a client of `/fcm/notification` gets to see whose request is refused: 400 `{"error": …}`.
    package init(refusingGroupRequest refusal: Refusal) {
        self.init(status: 400, member: "error", refusal.detail ?? refusal.code.title, code: refusal.code)
    }

    /// What a client of `/fcm/notification` gets to see when the gateway itself can't serve it.
    ///
    /// - Parameters:
    ///   - code: why, for logs.
    ///   - retryAfter: seconds to wait.
    /// - Returns: the answer.
    package static func groupsUnavailable(_ code: OutcomeCode, retryAfter: Int?) -> LegacyReply {
        LegacyReply(
            status: 503,
            member: "error",
            LegacyErrorName.unavailable.rawValue,
            retryAfter: retryAfter,
            code: code
        )
    }

    private init(
        status: Int,
        member: StaticString,
        _ text: String,
        retryAfter: Int? = nil,
        code: OutcomeCode? = nil
    ) {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member(member, text)
        writer.endObject()
        self.init(status: status, json: writer, retryAfter: retryAfter, code: code)
    }
}
