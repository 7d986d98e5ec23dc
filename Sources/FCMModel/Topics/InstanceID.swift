package import NIOCore
import StrictJSON

/// Writes requests to the Instance ID API.
package enum InstanceIDRequest {
    package static let maxTokens = 1_000

    package static func batch(_ change: SubscriptionChange, _ tokens: [String], _ topic: TopicName) -> TopicRequest {
        var writer = JSONWriter(reservingCapacity: 128 + tokens.reduce(0) { $0 + $1.utf8.count + 4 })
        writer.beginObject()
        writer.member("to", TopicName.legacyPrefix + topic.text)
        writer.member("registration_tokens", tokens)
        writer.endObject()
        let path =
            switch change {
            case .subscribe: "/iid/v1:batchAdd"
            case .unsubscribe: "/iid/v1:batchRemove"
            }
        return TopicRequest(
            .post,
            path,
            of: path,
            body: writer.finish(),
            maxAnswerBytes: Target.maxAnswerBytes(recipients: tokens.count)
        )
    }

    package static func info(_ token: String) -> TopicRequest {
        TopicRequest(.get, "/iid/info/\(PercentEncoding.encoded(token))?details=true", of: "/iid/info/{token}")
    }
}

/// A batch of subscriptions from a caller of the Instance ID API.
package struct InstanceIDBatch: Sendable, Hashable {
    package let topic: TopicName
    /// The devices, in the caller's order and with repetitions.
    package let tokens: [String]

    /// Reads a body. Unknown members are ignored.
    package init(parsing body: ByteBuffer) throws(Refusal) {
        let root: JSONValue
        do {
            root = try JSONDocument(parsing: body).root
        } catch {
            throw Refusal(.malformedJSON, "\(error.reason) at position \(error.offset)")
        }
        guard root.members != nil else { throw Refusal(.malformedJSON, "The body must be an object") }
        guard let topic = root["to"]?.string.flatMap(TopicName.init(legacy:)) else {
            throw Refusal(.invalidField, "to must be /topics/ and a topic's name")
        }
        guard PercentEncoding.isAddressable(topic.text) else {
            throw Refusal(.invalidField, "to must not name a topic that is only dots")
        }
        let list = root["registration_tokens"]
        let most = InstanceIDRequest.maxTokens
        guard let count = list?.elements?.count, (1...most).contains(count) else {
            throw Refusal(.invalidField, "registration_tokens must be an array of 1 to \(most) strings")
        }
        guard let tokens = list?.texts else {
            throw Refusal(.invalidField, "registration_tokens must hold only strings")
        }
        self.topic = topic
        self.tokens = tokens
    }
}

/// Reads the answers of the Instance ID API (V-IID).
///
/// An answer that can't be understood never retires a token.
package enum InstanceIDResponseReader {
    /// The limits fit two thousand topics with their dates, with some room.
    private static let limits = JSONLimits(maxMembers: 10_000)

    package static func batch(_ response: UpstreamResponse, count: Int, now: Int) -> TopicReading {
        let root = response.json(Self.limits)
        guard (200...299).contains(response.status) else { return Self.refusal(response, root, now: now) }
        guard let results = root?["results"]?.elements, results.count == count else {
            return TopicReading(rejected: .upstreamProtocol, upstreamCode: String(response.status))
        }
        var outcomes: [SubscriptionOutcome] = []
        outcomes.reserveCapacity(count)
        var firstError: String?
        for result in results {
            guard result.members != nil else {
                outcomes.append(.rejected(.upstreamProtocol))
                continue
            }
            guard let error = result["error"], !error.isNull else {
                outcomes.append(.done)
                continue
            }
            let name = error.string.flatMap(RPCStatus.init(rawValue:))
            if let name, let code = name.deviceCode {
                firstError = firstError ?? name.rawValue
                outcomes.append(.rejected(Rejection(code: code, limitedBy: code == .tenantRateExceeded ? .fcm : nil)))
            } else {
                outcomes.append(.rejected(.upstreamProtocol))
            }
        }
        return TopicReading(.changed(outcomes), upstreamCode: firstError ?? String(response.status))
    }

    package static func info(_ response: UpstreamResponse, now: Int) -> TopicReading {
        let root = response.json(Self.limits)
        let status = String(response.status)
        guard (200...299).contains(response.status) else {
            switch (response.status, root?["error"]?.string) {
            case (400, .some): return TopicReading(rejected: .invalidToken, upstreamCode: status)
            case (404, .some): return TopicReading(rejected: .unregistered, upstreamCode: status)
            default: return Self.refusal(response, root, now: now)
            }
        }
        guard let root, root.members != nil else {
            return TopicReading(rejected: .upstreamProtocol, upstreamCode: status)
        }
        var subscriptions: [TopicSubscription] = []
        if let topics = root["rel"]?["topics"]?.members {
            for member in topics {
                subscriptions.append(TopicSubscription(topic: member.key, since: member.value["addDate"]?.string))
            }
        }
        let labels = ["application", "applicationVersion", "authorizedEntity", "platform"]
        guard labels.allSatisfy({ AnswerBounds.isLabel(root[$0]?.string) }),
            subscriptions.allSatisfy(\.isWithinBounds)
        else { return TopicReading(rejected: .upstreamProtocol, upstreamCode: status) }
        let info = RegistrationInfo(
            application: root["application"]?.string,
            applicationVersion: root["applicationVersion"]?.string,
            authorizedEntity: root["authorizedEntity"]?.string,
            platform: root["platform"]?.string,
            subscriptions: subscriptions
        )
        return TopicReading(.registration(info, nextPage: nil), upstreamCode: status)
    }

    /// A request that was refused as a whole. Without a text in `error`, another server may have answered.
    private static func refusal(_ response: UpstreamResponse, _ root: JSONValue?, now: Int) -> TopicReading {
        let (code, signal): (OutcomeCode, TopicReading.Signal) =
            switch response.status {
            case 400 where root?["error"]?.string != nil: (.invalidField, .none)
            case 401: (.upstreamCredentials, .tokenRefused)
            case 403: (.upstreamCredentials, .holdsForAll)
            case 404: (.upstreamProtocol, .apiMissing)
            case 429: (.tenantRateExceeded, .holdsForAll)
            case 500: (.upstreamInternal, .none)
            case 501...599: (.upstreamUnavailable, .none)
            default: (.upstreamProtocol, .none)
            }
        let word = String(response.status)
        return TopicReading(rejected: code, delay: response.delay(now: now), signal: signal, upstreamCode: word)
    }
}

extension RPCStatus {
    /// The meaning for one device of a batch. `nil` for an error that the API does not have.
    fileprivate var deviceCode: OutcomeCode? {
        switch self {
        case .notFound: .unregistered
        case .invalidArgument: .invalidToken
        case .permissionDenied: .senderMismatch
        case .tooManyTopics: .tooManyTopics
        case .resourceExhausted: .tenantRateExceeded
        case .deadlineExceeded, .unavailable: .upstreamUnavailable
        case .internal, .unknown: .upstreamInternal
        case .unauthenticated: .upstreamCredentials
        case .aborted: nil
        }
    }
}

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
