import StrictJSON

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
