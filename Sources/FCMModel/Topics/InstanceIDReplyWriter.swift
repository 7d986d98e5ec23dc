import StrictJSON

/// Writes answers in the shapes of the Instance ID API.
package enum InstanceIDReplyWriter {
    package static func reply(to outcomes: [SubscriptionOutcome]) -> Reply {
        // If any device is done, the answer names no delay. Clients that see the header repeat the request for all
        // devices (TB-RETRYAFTER).
        var longestDelay: Int?
        var isDone = false
        var code: OutcomeCode?
        var writer = JSONWriter(reservingCapacity: 32 + outcomes.count * 8)
        writer.beginObject()
        writer.beginArray("results")
        for outcome in outcomes {
            writer.beginObject()
            switch outcome {
            case .done:
                isDone = true
            case .rejected(let rejection):
                writer.member("error", rejection.code.instanceIDErrorName.rawValue)
                code = code ?? rejection.code
                if let delay = rejection.retryAfter { longestDelay = max(longestDelay ?? 0, delay) }
            }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return Reply(json: writer, retryAfter: isDone ? nil : longestDelay, code: code)
    }

    /// Answers with FCM's record of a device. If there are no subscriptions, the answer has no member for them.
    package static func reply(with info: RegistrationInfo, includingTopics: Bool) -> Reply {
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        if let text = info.application { writer.member("application", text) }
        if let text = info.applicationVersion { writer.member("applicationVersion", text) }
        if let text = info.authorizedEntity { writer.member("authorizedEntity", text) }
        if let text = info.platform { writer.member("platform", text) }
        if includingTopics, !info.subscriptions.isEmpty {
            writer.beginObject("rel")
            writer.beginObject("topics")
            for subscription in info.subscriptions {
                writer.key(subscription.topic)
                writer.beginObject()
                // `since` may be a time, but the API reports only the day.
                if let since = subscription.since { writer.member("addDate", String(since.prefix(10))) }
                writer.endObject()
            }
            writer.endObject()
            writer.endObject()
        }
        writer.endObject()
        return Reply(json: writer)
    }

    package static let done = Reply.emptyObject

    /// Answers a request that can't be read or is not allowed. Only a request that can't be read gets the reason.
    package static func reply(to refusal: Refusal) -> Reply {
        var refusal = refusal
        switch refusal.code {
        case .unauthenticated, .forbidden, .auditUnavailable, .methodNotAllowed: refusal.detail = nil
        default: refusal.detail = refusal.detail ?? refusal.code.title
        }
        return Self.reply(refusing: refusal)
    }

    /// Answers a request that was refused as a whole, with the refusal's reason.
    package static func reply(refusing refusal: Refusal) -> Reply {
        let code = refusal.code
        let name = code.instanceIDErrorName
        let waits = name == .unavailable || name == .resourceExhausted
        return Reply(
            status: code == .methodNotAllowed ? 405 : code == .unsupportedMediaType ? 415 : name.httpStatus,
            member: "error",
            name.rawValue,
            reason: refusal.detail,
            retryAfter: refusal.retryAfter ?? (waits ? 5 : nil),
            code: code
        )
    }
}
