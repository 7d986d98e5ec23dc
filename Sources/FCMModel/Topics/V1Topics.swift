import NIOCore
import StrictJSON

/// Writes requests to v1's topic subscriptions. Each request concerns one device.
package struct V1TopicRequest: Sendable {
    /// The maximum number of subscriptions on one page. The longest names still fit into an answer of this many
    /// subscriptions.
    private static let pageSize = 300

    private static let template = "/v1/projects/{project}/registrations/{token}/topicSubscriptions"

    private let registrations: String

    package init(project: String) {
        self.registrations = "/v1/projects/\(PercentEncoding.encoded(project))/registrations/"
    }

    /// Changes a device's subscription to a topic. Ending a subscription that does not exist counts as done.
    package func change(_ change: SubscriptionChange, _ token: String, _ topic: TopicName) -> TopicRequest {
        let topic = PercentEncoding.encoded(topic.text)
        let path = self.subscriptions(of: token)
        let most = Target.maxAnswerBytes(recipients: 1)
        switch change {
        case .subscribe:
            let body = ByteBuffer(string: "{}")
            return TopicRequest(
                .post,
                "\(path)?topic_name=\(topic)",
                of: Self.template,
                body: body,
                maxAnswerBytes: most
            )
        case .unsubscribe:
            let template = "\(Self.template)/{topic}"
            return TopicRequest(.delete, "\(path)/\(topic)?allow_missing=true", of: template, maxAnswerBytes: most)
        }
    }

    package func list(_ token: String, page: String? = nil) -> TopicRequest {
        let next = page.map { "&page_token=\(PercentEncoding.encoded($0))" } ?? ""
        let path = "\(self.subscriptions(of: token))?page_size=\(Self.pageSize)\(next)"
        return TopicRequest(.get, path, of: Self.template)
    }

    private func subscriptions(of token: String) -> String {
        "\(self.registrations)\(PercentEncoding.encoded(token))/topicSubscriptions"
    }
}

/// Reads the answers of v1's topic subscriptions.
///
/// An answer that can't be understood never retires a token.
package enum V1TopicResponseReader {
    /// The limits fit a page of subscriptions with three members each, with some room.
    private static let limits = JSONLimits(maxMembers: 20_000, maxElements: 10_000)

    package static func change(_ response: UpstreamResponse, _ change: SubscriptionChange, now: Int) -> TopicReading {
        let status = String(response.status)
        guard (200...299).contains(response.status) else {
            let body = V1ErrorBody(response.body)
            if change == .subscribe, response.status == 409, body.status != RPCStatus.aborted.rawValue {
                // The device was already subscribed.
                return TopicReading(.changed([.done]), upstreamCode: status)
            }
            return Self.refusal(response, body, now: now)
        }
        // The body is empty or an object. An HTML page does not prove that anything was done.
        guard response.body.readableBytes == 0 || response.json()?.members != nil else {
            return TopicReading(rejected: .upstreamProtocol, upstreamCode: status)
        }
        return TopicReading(.changed([.done]), upstreamCode: status)
    }

    package static func list(_ response: UpstreamResponse, now: Int) -> TopicReading {
        let status = String(response.status)
        guard (200...299).contains(response.status) else {
            return Self.refusal(response, V1ErrorBody(response.body), now: now)
        }
        let unreadable = TopicReading(rejected: .upstreamProtocol, upstreamCode: status)
        guard let root = response.json(Self.limits), root.members != nil else { return unreadable }
        var subscriptions: [TopicSubscription] = []
        if let list = root.field("topic_subscriptions", or: "topicSubscriptions") {
            guard let elements = list.elements else { return unreadable }
            for element in elements {
                guard let subscription = Self.subscription(element), subscription.isWithinBounds else {
                    return unreadable
                }
                subscriptions.append(subscription)
            }
        }
        let nextPage = root.text("next_page_token", or: "nextPageToken")
        guard nextPage.map(AnswerBounds.isToken) ?? true else { return unreadable }
        return TopicReading(
            .registration(RegistrationInfo(subscriptions: subscriptions), nextPage: nextPage),
            upstreamCode: status
        )
    }

    /// Reads an entry of a list. The topic is in a member of its own, or at the end of the entry's name.
    private static func subscription(_ value: JSONValue) -> TopicSubscription? {
        let topic = value.text("topic_name", or: "topicName") ?? value.text("name").flatMap(Self.lastSegment)
        return topic.map { TopicSubscription(topic: $0, since: value.text("create_time", or: "createTime")) }
    }

    private static func lastSegment(_ name: String) -> String? {
        let marker = "/topicSubscriptions/"
        guard let range = name.firstRange(of: marker), range.upperBound < name.endIndex else { return nil }
        return String(name[range.upperBound...])
    }

    // MARK: Refusals

    private static func refusal(_ response: UpstreamResponse, _ body: V1ErrorBody, now: Int) -> TopicReading {
        let cause = V1Classification(status: response.status, body: body, kind: .token)
        var code = cause.code
        var signal = TopicReading.Signal.none
        if Self.tellsOfTooManyTopics(body) {
            code = .tooManyTopics
        } else if Self.isQuota(response.status, body, cause.signal) {
            // The quota for subscriptions is the project's.
            code = .tenantRateExceeded
            signal = .holdsForAll
        } else if response.status == 404, !body.hasCode {
            signal = .apiMissing
        } else if response.status == 409 {
            code = .upstreamUnavailable
        } else if response.status == 400, code == .invalidField || code == .invalidTarget {
            code = Self.blamesDevice(body) ? .invalidToken : .invalidField
        } else {
            switch cause.signal {
            case .tokenRefused: signal = .tokenRefused
            case .credentialRefused: signal = body.hasCode ? .none : .holdsForAll
            case .none, .projectQuota, .targetQuota, .trouble: break
            }
        }
        return TopicReading(
            rejected: code,
            delay: response.delay(now: now) ?? body.retryDelay,
            signal: signal,
            upstreamCode: body.knownWord ?? String(response.status)
        )
    }

    private static func isQuota(_ status: Int, _ body: V1ErrorBody, _ signal: V1Reading.Signal) -> Bool {
        switch signal {
        case .projectQuota, .targetQuota: true
        case .none, .tokenRefused, .credentialRefused, .trouble:
            status == 429 || body.status == RPCStatus.resourceExhausted.rawValue
        }
    }

    private static func tellsOfTooManyTopics(_ body: V1ErrorBody) -> Bool {
        let text = body.message.lowercased()
        return text.contains("too many topics") || text.contains("too_many_topics")
    }

    /// True if a text of the body blames the registration for a bad argument.
    private static func blamesDevice(_ body: V1ErrorBody) -> Bool {
        let violations = body.violations
        return ([body.message] + violations.map(\.description) + violations.map(\.field))
            .contains { $0.lowercased().contains("registration") }
    }
}
