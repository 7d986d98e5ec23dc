import NIOCore
import StrictJSON

/// Reads the answers of the Instance ID API (V-IID).
///
/// An answer that can't be understood is never the death of a token.
package enum InstanceIDResponseReader {
    /// Two thousand topics with their dates, and room beside them.
    private static let limits = JSONLimits(maxMembers: 10_000)

    /// Reads the answer to a batch of so many devices: one outcome for each, or why there is none.
    package static func batch(_ response: UpstreamResponse, count: Int, now: Int) -> TopicReading {
        let root = Self.root(of: response)
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
            if let name, let rejection = name.rejection {
                firstError = firstError ?? name.rawValue
                outcomes.append(.rejected(rejection))
            } else {
                outcomes.append(.rejected(.upstreamProtocol))
            }
        }
        return TopicReading(.changed(outcomes), upstreamCode: firstError ?? String(response.status))
    }

    /// Reads the answer to a question about one device.
    package static func info(_ response: UpstreamResponse, now: Int) -> TopicReading {
        let root = Self.root(of: response)
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

    private static func root(of response: UpstreamResponse) -> JSONValue? {
        (try? JSONDocument(parsing: response.body, limits: Self.limits))?.root
    }

    /// A request that was refused as a whole; without a text in `error` it may have been something else that answered.
    private static func refusal(_ response: UpstreamResponse, _ root: JSONValue?, now: Int) -> TopicReading {
        let status = String(response.status)
        let delay = response.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
        switch response.status {
        case 400 where root?["error"]?.string != nil:
            return TopicReading(rejected: .invalidField, upstreamCode: status)
        case 401:
            return TopicReading(rejected: .upstreamCredentials, signal: .tokenRefused, upstreamCode: status)
        case 403:
            return TopicReading(rejected: .upstreamCredentials, signal: .holdsForAll, upstreamCode: status)
        case 404:
            return TopicReading(rejected: .upstreamProtocol, signal: .apiMissing, upstreamCode: status)
        case 429:
            return TopicReading(
                rejected: .tenantRateExceeded,
                retryAfter: delay ?? RetryAfter.afterTooManyRequests,
                signal: .holdsForAll,
                upstreamCode: status
            )
        case 500:
            return TopicReading(rejected: .upstreamInternal, retryAfter: delay, upstreamCode: status)
        case 501...599:
            return TopicReading(rejected: .upstreamUnavailable, retryAfter: delay, upstreamCode: status)
        default:
            return TopicReading(rejected: .upstreamProtocol, upstreamCode: status)
        }
    }
}

extension RPCStatus {
    /// The rejection of a device in a batch; `nil` for an error that the API does not have.
    fileprivate var rejection: Rejection? {
        switch self {
        case .notFound: Rejection(code: .unregistered)
        case .invalidArgument: Rejection(code: .invalidToken)
        case .permissionDenied: Rejection(code: .senderMismatch)
        case .tooManyTopics: Rejection(code: .tooManyTopics)
        case .resourceExhausted: Rejection(code: .tenantRateExceeded, limitedBy: .fcm)
        case .deadlineExceeded, .unavailable: Rejection(code: .upstreamUnavailable)
        case .internal, .unknown: Rejection(code: .upstreamInternal)
        case .unauthenticated: Rejection(code: .upstreamCredentials)
        case .aborted: nil
        }
    }
}
