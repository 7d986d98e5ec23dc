import FCMModel
import HTTPTypes

/// A path of the APIs by which FCM's own clients keep subscriptions.
enum TopicFacadeRoute: Sendable, Hashable {
    /// `/iid/v1:batchAdd` and `/iid/v1:batchRemove`.
    case batch(SubscriptionChange)
    /// `/iid/info/{token}`.
    case info(token: String)
    /// `/iid/v1/{token}/rel/topics/{topic}`.
    case relation(token: String, topic: String)
    /// `/v1/projects/{project}/registrations/{token}/topicSubscriptions`.
    case collection(project: String, token: String)
    /// The same with a topic behind it.
    case subscription(project: String, token: String, topic: String)

    private static let instanceIDPrefix = Array("/iid/".utf8)
    private static let v1Prefix = Array("/v1/projects/".utf8)

    /// The route of a path with its query; `nil` for a path of something else.
    init?(_ path: [UInt8]) {
        guard path.starts(with: Self.instanceIDPrefix) || path.starts(with: Self.v1Prefix) else { return nil }
        let segments = path.prefix { $0 != UInt8(ascii: "?") }
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .dropFirst()
            .map(Array.init)
        // What is no text is no token and no topic, and is refused as such.
        func text(_ index: Int) -> String { PercentEncoding.decoded(segments[index]) ?? "" }
        func isAt(_ index: Int, _ name: StaticString) -> Bool {
            text(index) == name.description
        }
        switch segments.count {
        case 2 where isAt(0, "iid") && isAt(1, "v1:batchAdd"):
            self = .batch(.subscribe)
        case 2 where isAt(0, "iid") && isAt(1, "v1:batchRemove"):
            self = .batch(.unsubscribe)
        case 3 where isAt(0, "iid") && isAt(1, "info"):
            self = .info(token: text(2))
        case 6 where isAt(0, "iid") && isAt(1, "v1") && isAt(3, "rel") && isAt(4, "topics"):
            self = .relation(token: text(2), topic: text(5))
        case 6 where isAt(0, "v1") && isAt(3, "registrations") && isAt(5, "topicSubscriptions"):
            self = .collection(project: text(2), token: text(4))
        case 7 where isAt(0, "v1") && isAt(3, "registrations") && isAt(5, "topicSubscriptions"):
            self = .subscription(project: text(2), token: text(4), topic: text(6))
        default:
            return nil
        }
    }

    /// One route of each template.
    static let kinds: [TopicFacadeRoute] = [
        .batch(.subscribe),
        .batch(.unsubscribe),
        .info(token: ""),
        .relation(token: "", topic: ""),
        .collection(project: "", token: ""),
        .subscription(project: "", token: "", topic: ""),
    ]

    /// The route's template, for metrics and logs.
    var template: String {
        switch self {
        case .batch(.subscribe): "/iid/v1:batchAdd"
        case .batch(.unsubscribe): "/iid/v1:batchRemove"
        case .info: "/iid/info/{token}"
        case .relation: "/iid/v1/{token}/rel/topics/{topic}"
        case .collection: "/v1/projects/{project}/registrations/{token}/topicSubscriptions"
        case .subscription: "/v1/projects/{project}/registrations/{token}/topicSubscriptions/{topic}"
        }
    }

    /// What a request by a method does to subscriptions; `nil` for a look-up.
    func change(by method: HTTPRequest.Method) -> SubscriptionChange? {
        switch self {
        case .batch(let change): change
        case .info: nil
        case .relation, .collection, .subscription:
            switch method {
            case .get: nil
            case .delete: .unsubscribe
            default: .subscribe
            }
        }
    }

    /// The methods that are served there.
    var methods: [String] {
        switch self {
        case .batch: ["POST"]
        case .info: ["GET"]
        case .relation: ["DELETE", "POST"]
        case .collection: ["GET", "POST"]
        case .subscription: ["DELETE"]
        }
    }
}
