import StrictJSON

/// Writes answers in v1's shapes (V-FACADE), both for `messages:send` and for topic subscriptions.
package struct V1ReplyWriter: Sendable {
    /// The project in the request's path.
    private let project: String

    package init(project: String) {
        self.project = project
    }

    // MARK: messages:send

    package func reply(to outcome: RecipientOutcome) -> Reply {
        switch outcome {
        case .accepted(let acceptance):
            Reply(member: "name", "projects/\(self.project)/messages/\(acceptance.messageID)")
        case .rejected(let rejection):
            Self.reply(refusing: rejection)
        }
    }

    /// The answer to an accepted message to a device group. v1 reports nothing more, not even failed members.
    package static let groupAcceptance = Reply.emptyObject

    package static func reply(refusing rejection: Rejection) -> Reply {
        let name = rejection.legacyErrorName
        let isAPNS = rejection.code == .upstreamCredentials && name == .invalidAPNSCredential
        let error = isAPNS ? V1Error.thirdPartyAuth : rejection.code.v1Error
        // An error of Google's front end has no FCM code. The gateway names no field in it.
        let violation = error == .invalidArgument ? name.v1Violation : nil
        return Self.reply(error, violation, retryAfter: rejection.retryAfter, code: rejection.code)
    }

    package static func reply(to refusal: Refusal) -> Reply {
        let detail = refusal.detail ?? refusal.code.title
        if let field = refusal.fields.first {
            return Self.reply(
                V1Error(.invalidArgument, refusal.isSyntactic ? nil : .invalidArgument, detail),
                V1Error.FieldViolation(field: field.path, description: field.detail),
                code: refusal.code
            )
        }
        switch refusal.code {
        case .methodNotAllowed:
            return Self.methodNotAllowed
        case .badRequest, .unsupportedMediaType, .malformedJSON, .invalidTarget, .invalidField:
            return Self.reply(V1Error(.invalidArgument, nil, detail), code: refusal.code)
        default:
            return Self.reply(refusing: refusal.rejection)
        }
    }

    private static let methodNotAllowed: Reply = {
        let error = V1Error(.invalidArgument, nil, "The method is not allowed here.")
        return Reply(status: 405, Self.reply(error, code: .methodNotAllowed).body, code: .methodNotAllowed)
    }()

    // MARK: Topic subscriptions

    /// Answers that a subscription exists now, regardless of its earlier state.
    package func reply(subscribing token: String, to topic: TopicName) -> Reply {
        var writer = JSONWriter()
        self.write(TopicSubscription(topic: topic.text), of: token, to: &writer)
        return Reply(json: writer)
    }

    package static let unsubscribed = Reply.emptyObject

    package func reply(
        listing subscriptions: some Sequence<TopicSubscription>,
        of token: String,
        nextPage: String?
    ) -> Reply {
        var writer = JSONWriter(reservingCapacity: 1_024)
        writer.beginObject()
        writer.beginArray("topicSubscriptions")
        for subscription in subscriptions {
            self.write(subscription, of: token, to: &writer)
        }
        writer.endArray()
        if let nextPage { writer.member("nextPageToken", nextPage) }
        writer.endObject()
        return Reply(json: writer)
    }

    package static func reply(refusingSubscription rejection: Rejection) -> Reply {
        guard rejection.code == .invalidToken else { return Self.reply(refusing: rejection) }
        let text = "The registration token is not a valid FCM registration token"
        return Self.reply(V1Error(.invalidArgument, .invalidArgument, text), code: rejection.code)
    }

    private func write(_ subscription: TopicSubscription, of token: String, to writer: inout JSONWriter) {
        writer.beginObject()
        let device = "projects/\(self.project)/registrations/\(token)"
        writer.member("name", "\(device)/topicSubscriptions/\(subscription.topic)")
        writer.member("topicName", subscription.topic)
        if let since = subscription.since {
            // The Instance ID API reports only the day.
            writer.member("createTime", since.utf8.count == 10 ? "\(since)T00:00:00Z" : since)
        }
        writer.endObject()
    }

    // MARK: google.rpc.Status

    private static func reply(
        _ error: V1Error,
        _ violation: V1Error.FieldViolation? = nil,
        retryAfter: Int? = nil,
        code: OutcomeCode
    ) -> Reply {
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        writer.beginObject("error")
        writer.member("code", error.status.httpStatus)
        writer.member("message", error.message)
        writer.member("status", error.status.rawValue)
        if error.code != nil || violation != nil {
            writer.beginArray("details")
            if let code = error.code { Self.write(code, to: &writer) }
            if let violation { Self.write(violation, to: &writer) }
            writer.endArray()
        }
        writer.endObject()
        writer.endObject()
        let delay: Int? =
            switch error.delay {
            case .never: nil
            case .named: retryAfter
            case .seconds(let seconds): retryAfter ?? seconds
            }
        return Reply(status: error.status.httpStatus, json: writer, retryAfter: delay, code: code)
    }

    private static func write(_ code: V1ErrorCode, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("@type", "type.googleapis.com/google.firebase.fcm.v1.FcmError")
        writer.member("errorCode", code.rawValue)
        writer.endObject()
    }

    private static func write(_ violation: V1Error.FieldViolation, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("@type", "type.googleapis.com/google.rpc.BadRequest")
        writer.beginArray("fieldViolations")
        writer.beginObject()
        if !violation.field.isEmpty { writer.member("field", violation.field) }
        writer.member("description", violation.description)
        writer.endObject()
        writer.endArray()
        writer.endObject()
    }
}
