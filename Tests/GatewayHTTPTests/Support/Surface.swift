import HTTPTypes
import Testing

@testable import GatewayHTTP

/// A route of the data listener, by whoever's words it is answered in.
struct Surface: Sendable, CustomTestStringConvertible {
    var method: HTTPRequest.Method
    var path: String
    var body = ""
    var headers: [String: String] = [:]
    var dialect: Dialect
    /// Whether it asks the upstream, so that it waits for the answer.
    var waits = true
    /// Whether it takes messages of high priority.
    var sends = false

    var testDescription: String { "\(self.method.rawValue) \(self.path)" }

    /// Asks a gateway.
    func ask(_ gateway: TestGateway, key: String, body: String? = nil, lag: Duration = .zero) async -> Answer {
        await gateway.data(
            self.method,
            self.path,
            key: key,
            body: body ?? self.body,
            headers: self.headers,
            lag: lag
        )
    }

    /// The same with a message of high priority, where it takes messages.
    var urgentBody: String {
        switch self.dialect {
        case .v1: #"{"message":{"token":"d","android":{"priority":"high"}}}"#
        case .legacy: #"{"to":"d","priority":"high"}"#
        case .rest, .instanceID, .groups: #"{"token":"d","priority":"high"}"#
        }
    }

    static let sending = [
        Surface(
            method: .post,
            path: "/v1/tenants/demo/messages",
            body: #"{"token":"d"}"#,
            dialect: .rest,
            sends: true
        ),
        Surface(method: .post, path: "/fcm/send", body: #"{"to":"d"}"#, dialect: .legacy, sends: true),
        Surface(
            method: .post,
            path: "/v1/projects/demo/messages:send",
            body: #"{"message":{"token":"d"}}"#,
            dialect: .v1,
            sends: true
        ),
    ]

    static let others = [
        Surface(
            method: .post,
            path: "/fcm/notification",
            body: #"{"operation":"create","notification_key_name":"n","registration_ids":["a"]}"#,
            dialect: .groups
        ),
        Surface(
            method: .post,
            path: "/iid/v1:batchAdd",
            body: #"{"to":"/topics/news","registration_tokens":["t"]}"#,
            dialect: .instanceID
        ),
        Surface(method: .get, path: "/iid/info/t", dialect: .instanceID),
        Surface(
            method: .post,
            path: "/v1/projects/demo/registrations/t/topicSubscriptions?topic_name=news",
            dialect: .v1
        ),
        Surface(
            method: .post,
            path: "/v1/tenants/demo/topics/news/subscriptions",
            body: #"{"tokens":["t"]}"#,
            dialect: .rest
        ),
        Surface(
            method: .put,
            path: "/v1/tenants/demo/device-groups/family",
            body: #"{"tokens":["t"]}"#,
            dialect: .rest
        ),
        Surface(
            method: .post,
            path: "/v1/tenants/demo/messages/explain",
            body: #"{"token":"d"}"#,
            dialect: .rest,
            waits: false
        ),
        Surface(method: .get, path: "/v1/tenants/demo/audit", dialect: .rest, waits: false),
        Surface(method: .get, path: "/v1/tenants/demo/retired-tokens", dialect: .rest, waits: false),
    ]

    static let all = Self.sending + Self.others
}
