import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

/// A route of the data listener, with a request that it serves and the dialect of its answers.
struct Surface: Sendable, CustomTestStringConvertible {
    var method: HTTPRequest.Method
    var path: String
    var body: String
    var dialect: Dialect
    /// True if the route calls the upstream and waits for its answer.
    var waits = true
    /// True if the route accepts messages of high priority.
    var sends = false
    var headers: [String: String] = [:]

    var testDescription: String { "\(self.method.rawValue) \(self.path)" }

    init(
        _ method: HTTPRequest.Method,
        _ path: String,
        _ dialect: Dialect,
        _ body: String = "",
        waits: Bool = true,
        sends: Bool = false
    ) {
        self.method = method
        self.path = path
        self.body = body
        self.dialect = dialect
        self.waits = waits
        self.sends = sends
    }

    func ask(
        _ gateway: TestGateway,
        key: String?,
        body: String? = nil,
        clientNames: [String] = [],
        lag: Duration = .zero
    ) async -> Answer {
        await gateway.data(
            self.method,
            self.path,
            key: key,
            body: body ?? self.body,
            headers: self.headers,
            clientNames: clientNames,
            lag: lag
        )
    }

    /// The body of a message of high priority.
    var urgentBody: String {
        switch self.dialect {
        case .v1: #"{"message":{"token":"d","android":{"priority":"high"}}}"#
        case .legacy: #"{"to":"d","priority":"high"}"#
        case .rest, .console, .instanceID, .groups: #"{"token":"d","priority":"high"}"#
        }
    }

    static let sending: [Surface] = [
        Surface(.post, "/v1/tenants/demo/messages", .rest, #"{"token":"d"}"#, sends: true),
        Surface(.post, "/fcm/send", .legacy, #"{"to":"d"}"#, sends: true),
        Surface(.post, "/v1/projects/demo/messages:send", .v1, #"{"message":{"token":"d"}}"#, sends: true),
    ]

    private static let newGroup = #"{"operation":"create","notification_key_name":"n","registration_ids":["a"]}"#

    static let others: [Surface] = [
        Surface(.post, "/fcm/notification", .groups, Self.newGroup),
        Surface(.post, "/iid/v1:batchAdd", .instanceID, #"{"to":"/topics/news","registration_tokens":["t"]}"#),
        Surface(.get, "/iid/info/t", .instanceID),
        Surface(.post, "/v1/projects/demo/registrations/t/topicSubscriptions?topic_name=news", .v1),
        Surface(.get, "/v1/projects/demo/registrations/t/topicSubscriptions", .v1),
        Surface(.post, "/v1/tenants/demo/topics/news/subscriptions", .rest, #"{"tokens":["t"]}"#),
        Surface(.get, "/v1/tenants/demo/subscriptions?token=t", .rest),
        Surface(.put, "/v1/tenants/demo/device-groups/family", .rest, #"{"tokens":["t"]}"#),
        Surface(.get, "/v1/tenants/demo/device-groups", .rest, waits: false),
        Surface(.post, "/v1/tenants/demo/messages/explain", .rest, #"{"token":"d"}"#, waits: false),
        Surface(.get, "/v1/tenants/demo/audit", .rest, waits: false),
        Surface(.get, "/v1/tenants/demo/retired-tokens", .rest, waits: false),
    ]

    static let all = Self.sending + Self.others
}

/// A way to send a message.
enum SendSurface: String, CaseIterable, Sendable {
    case rest
    case legacy
    /// The legacy protocol's forms.
    case form
    case v1

    /// The surfaces with JSON bodies.
    static let json = [Self.rest, .legacy, .v1]

    func body(_ token: String = "device", score: String = "3x1") -> String {
        switch self {
        case .rest: #"{"token":"\#(token)","data":{"score":"\#(score)"}}"#
        case .legacy: #"{"to":"\#(token)","data":{"score":"\#(score)"}}"#
        case .form: "registration_id=\(token)&data.score=\(score)"
        case .v1: #"{"message":{"token":"\#(token)","data":{"score":"\#(score)"}}}"#
        }
    }

    func send(
        _ gateway: TestGateway,
        _ body: String? = nil,
        key: String?,
        headers: [String: String] = [:]
    ) async -> Answer {
        let body = body ?? self.body()
        return switch self {
        case .rest: await gateway.send(body, key: key, headers: headers)
        case .legacy: await gateway.legacy(body, key: key, headers: headers)
        case .form: await gateway.form(body, key: key, headers: headers)
        case .v1: await gateway.v1(body, key: key, headers: headers)
        }
    }

    /// The outcome as the surface writes it: the error, or else the message's name or the body.
    func outcome(of answer: Answer) -> String {
        switch self {
        case .rest: answer.value["code"]?.text ?? answer.value["message_id"]?.text ?? answer.body
        case .legacy: answer.value["results"]?[0]?["error"]?.text ?? answer.body
        case .form: answer.body
        case .v1: answer.value["error"]?["status"]?.text ?? answer.body
        }
    }
}
