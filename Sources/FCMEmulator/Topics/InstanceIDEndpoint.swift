import Foundation

/// The Instance ID API: method, credentials and body of a request, then its effect.
struct InstanceIDEndpoint {
    private static let tokenCounts = 1...1_000
    private static let scheme = "Bearer "
    let legacy: LegacyEndpoint
    let access: (String) -> AccessTokens.Access

    enum Call: Equatable {
        case batch(adds: Bool, topic: String, tokens: [String])
        case relation(adds: Bool, topic: String, token: String)
        case info(token: String, hasDetails: Bool)
    }

    func call(_ request: ReceivedRequest, at path: TopicRequestPath) throws(InstanceIDError) -> Call {
        try self.authorize(request)
        switch path {
        case .batch(let adds):
            try Self.allow(["POST"], request)
            return try Self.batch(request, adds: adds)
        case .relation(let token, let topic):
            try Self.allow(["POST", "DELETE"], request)
            guard TopicName.isValid(topic.utf8) else { throw .invalid("malformed topic name") }
            return .relation(adds: request.method == "POST", topic: topic, token: token)
        case .info(let token):
            try Self.allow(["GET", "POST"], request)
            let query = request.target.dropFirst(request.path.count + 1)
            return .info(token: token, hasDetails: query.split(separator: "&").contains("details=true"))
        case .subscriptions:
            throw .invalid("no such path")
        }
    }

    private static func allow(_ methods: [String], _ request: ReceivedRequest) throws(InstanceIDError) {
        guard methods.contains(request.method) else { throw .invalid("the method is \(request.method)") }
    }

    private func authorize(_ request: ReceivedRequest) throws(InstanceIDError) {
        guard let authorization = request.header("authorization") else { throw .unauthorized }
        guard authorization.hasPrefix(Self.scheme) else {
            if self.legacy.refusal(of: authorization) != nil { throw .unauthorized }
            return
        }
        guard request.header("access_token_auth") == "true" else { throw .unauthorized }
        switch self.access(String(authorization.dropFirst(Self.scheme.count))) {
        case .unknown, .expired: throw .unauthorized
        case .granted(let grant): if !grant.allowsSending { throw .forbidden }
        }
    }

    private static func batch(_ request: ReceivedRequest, adds: Bool) throws(InstanceIDError) -> Call {
        let members: [String: JSONValue]
        do {
            members = try JSONValue.members(of: request.bodyBytes)
        } catch {
            throw .invalid(error.reason)
        }
        guard let to = members.string("to"), to.hasPrefix(TopicName.prefix) else { throw .invalid("to is missing") }
        let topic = String(to.dropFirst(TopicName.prefix.count))
        guard TopicName.isValid(topic.utf8) else { throw .invalid("malformed topic name") }
        guard case .array(let list)? = members["registration_tokens"], Self.tokenCounts.contains(list.count) else {
            throw .invalid("registration_tokens must hold 1 to 1000 tokens")
        }
        var tokens: [String] = []
        for entry in list {
            guard case .string(let token) = entry else { throw .invalid("a token is not a string") }
            tokens.append(token)
        }
        return .batch(adds: adds, topic: topic, tokens: tokens)
    }
}

extension InstanceIDEndpoint.Call {
    func run(on subscriptions: inout Subscriptions, now: Date) -> (Answer, reason: String?) {
        switch self {
        case .batch(let adds, let topic, let tokens):
            var failures: Set<String> = []
            let results = tokens.map { token in
                guard let error = Self.change(adds, topic, token, &subscriptions, now) else { return "{}" }
                failures.insert(error.text)
                return #"{"error":\#(JSONValue.quoted(error.text))}"#
            }
            let reason = failures.isEmpty ? nil : "refused devices: " + failures.sorted().joined(separator: ", ")
            return (.json(#"{"results":["# + results.joined(separator: ",") + "]}"), reason)
        case .relation(let adds, let topic, let token):
            guard let error = Self.change(adds, topic, token, &subscriptions, now) else { return (.json("{}"), nil) }
            return (error.answer, error.text)
        case .info(let token, let hasDetails):
            if let error = Self.refusal(of: token) {
                let text = error.status == 400 ? "InvalidToken" : error.text
                return (.json(#"{"error":\#(JSONValue.quoted(text))}"#, status: error.status), text)
            }
            return (.json(Self.info(hasDetails ? subscriptions.topics(of: token) : [:])), nil)
        }
    }

    private static func change(
        _ adds: Bool,
        _ topic: String,
        _ token: String,
        _ subscriptions: inout Subscriptions,
        _ now: Date
    ) -> InstanceIDError? {
        if let error = self.refusal(of: token) { return error }
        guard adds else {
            subscriptions.unsubscribe(token, from: topic)
            return nil
        }
        guard subscriptions.mayFollow(topic, token: token) else { return .tooManyTopics }
        subscriptions.subscribe([token], to: topic, at: now)
        return nil
    }

    private static func refusal(of token: String) -> InstanceIDError? {
        guard !token.isEmpty else { return InstanceIDError(scripted: "INVALID_ARGUMENT") }
        guard case .failed(let name) = TokenScript(token: token) else { return nil }
        return InstanceIDError(scripted: name)
    }

    private static func info(_ topics: [String: Date]) -> String {
        var text = #"{"application":"com.example.app","applicationVersion":"36","authorizedEntity":"123456789012""#
        text += #","platform":"ANDROID""#
        if !topics.isEmpty {
            let members = topics.sorted { $0.key < $1.key }
                .map { topic, time in
                    let day = time.formatted(Date.ISO8601FormatStyle().year().month().day())
                    return #"\#(JSONValue.quoted(topic)):{"addDate":"\#(day)"}"#
                }
            text += #","rel":{"topics":{"# + members.joined(separator: ",") + "}}"
        }
        return text + "}"
    }
}

/// An error of the Instance ID API.
struct InstanceIDError: RequestRefusal, Equatable {
    let status: Int
    /// The text of `error`.
    let text: String

    var reason: String { self.text }

    var answer: Answer {
        .json(#"{"error":\#(JSONValue.quoted(self.text))}"#, status: self.status)
    }

    static let unauthorized = Self(status: 401, text: "Unauthorized")
    static let forbidden = Self(status: 403, text: "PERMISSION_DENIED")
    static let tooManyTopics = Self(status: 400, text: "TOO_MANY_TOPICS")

    static func invalid(_ text: String) -> Self {
        Self(status: 400, text: "INVALID_ARGUMENT: \(text)")
    }

    init(scripted name: String) {
        switch name {
        case "NOT_FOUND", "UNREGISTERED", LegacyErrorName.notRegistered.rawValue:
            self.init(status: 404, text: "NOT_FOUND")
        case "INVALID_ARGUMENT", LegacyErrorName.invalidRegistration.rawValue,
            LegacyErrorName.missingRegistration.rawValue, LegacyErrorName.invalidParameters.rawValue:
            self.init(status: 400, text: "INVALID_ARGUMENT")
        case "PERMISSION_DENIED", "SENDER_ID_MISMATCH", LegacyErrorName.mismatchSenderID.rawValue:
            self = .forbidden
        case "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", LegacyErrorName.deviceMessageRateExceeded.rawValue,
            LegacyErrorName.topicsMessageRateExceeded.rawValue:
            self.init(status: 429, text: "RESOURCE_EXHAUSTED")
        case "DEADLINE_EXCEEDED", "UNAVAILABLE", LegacyErrorName.unavailable.rawValue:
            self.init(status: 503, text: "DEADLINE_EXCEEDED")
        case "INTERNAL", LegacyErrorName.internalServerError.rawValue:
            self.init(status: 500, text: "INTERNAL")
        default:
            self.init(status: name == "TOO_MANY_TOPICS" ? 400 : 500, text: name)
        }
    }

    private init(status: Int, text: String) {
        self.status = status
        self.text = text
    }
}
