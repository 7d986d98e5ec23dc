import Foundation

/// A path of the APIs for subscriptions.
enum TopicRequestPath: Equatable {
    /// `/iid/v1:batchAdd` and `/iid/v1:batchRemove`.
    case batch(adds: Bool)
    /// `/iid/info/<token>`.
    case info(token: String)
    /// `/iid/v1/<token>/rel/topics/<topic>`.
    case relation(token: String, topic: String)
    /// `/v1/projects/<project>/registrations/<token>/topicSubscriptions`, and the same with `/<topic>`.
    case subscriptions(project: String, token: String, topic: String?)

    init?(_ path: String) {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        func text(_ index: Int) -> String { segments[index].removingPercentEncoding ?? "" }
        switch segments {
        case ["iid", "v1:batchAdd"]:
            self = .batch(adds: true)
        case ["iid", "v1:batchRemove"]:
            self = .batch(adds: false)
        case _ where segments.count == 3 && segments[0] == "iid" && segments[1] == "info":
            self = .info(token: text(2))
        case _ where segments.count == 6 && segments[..<2] == ["iid", "v1"] && segments[3...4] == ["rel", "topics"]:
            self = .relation(token: text(2), topic: text(5))
        case _
        where (6...7).contains(segments.count) && segments[..<2] == ["v1", "projects"]
            && segments[3] == "registrations" && segments[5] == "topicSubscriptions":
            self = .subscriptions(project: text(2), token: text(4), topic: segments.count == 7 ? text(6) : nil)
        default:
            return nil
        }
    }

    func tokens(body: [UInt8]) -> [String] {
        switch self {
        case .info(let token), .relation(let token, _), .subscriptions(_, let token, _):
            return [token]
        case .batch:
            guard let members = try? JSONValue.members(of: body),
                case .array(let list)? = members["registration_tokens"]
            else { return [] }
            return list.map(\.text)
        }
    }
}

/// v1's topic subscriptions: method, credentials and parameters of a request, then its effect.
struct V1TopicEndpoint {
    private static let defaultPageSize = 1_000
    private static let maxPageSize = 2_000
    let v1: V1Endpoint
    let token: String
    let topic: String?

    enum Call: Equatable {
        case create(topic: String)
        case delete(topic: String, allowsMissing: Bool)
        case list(size: Int, start: Int)
    }

    func call(_ request: ReceivedRequest) throws(V1Failure) -> Call {
        try self.v1.authorize(request.header("authorization"))
        let query = try Self.query(of: request)
        switch (request.method, self.topic) {
        case ("POST", nil):
            do {
                _ = try JSONValue.members(of: request.bodyBytes)
            } catch {
                throw .notJSON(error.reason)
            }
            return .create(topic: try Self.checked(query["topic_name"] ?? query["topicName"] ?? ""))
        case ("DELETE", let topic?):
            guard request.bodyBytes.isEmpty || request.bodyBytes == Array("{}".utf8) else {
                throw .notJSON("The request body must be empty.")
            }
            let allowsMissing = (query["allow_missing"] ?? query["allowMissing"]) == "true"
            return .delete(topic: try Self.checked(topic), allowsMissing: allowsMissing)
        case ("GET", nil):
            let size = (query["page_size"] ?? query["pageSize"]).map { Int($0) } ?? Self.defaultPageSize
            let start = (query["page_token"] ?? query["pageToken"]).map { Int($0) } ?? 0
            guard let size, let start, size > 0, start >= 0 else { throw .invalid(nil, "malformed page") }
            return .list(size: min(size, Self.maxPageSize), start: start)
        default:
            throw .noSuchProject
        }
    }

    private static func checked(_ topic: String) throws(V1Failure) -> String {
        guard TopicName.isValid(topic.utf8) else {
            throw .invalid("topic_name", "Invalid topic name", message: "Invalid topic name provided")
        }
        return topic
    }

    private static func query(of request: ReceivedRequest) throws(V1Failure) -> [String: String] {
        do {
            let fields = try FormFields.read(Array(request.target.dropFirst(request.path.count + 1).utf8))
            return Dictionary(fields.map { ($0.name, $0.value) }) { $1 }
        } catch {
            throw .invalid(nil, "malformed query")
        }
    }

    func run(_ call: Call, on subscriptions: inout Subscriptions, now: Date) -> (Answer, reason: String?) {
        do throws(V1Failure) {
            return (.json(try self.answer(call, &subscriptions, now)), nil)
        } catch {
            return (error.answer, error.reason)
        }
    }

    private func answer(_ call: Call, _ subscriptions: inout Subscriptions, _ now: Date) throws(V1Failure) -> String {
        guard !self.token.isEmpty else { throw .invalidToken }
        if case .failed(let name) = TokenScript(token: self.token) {
            throw name == "TOO_MANY_TOPICS" ? .tooManyTopics : V1Failure(scripted: name)
        }
        switch call {
        case .create(let topic):
            guard subscriptions.topics(of: self.token)[topic] == nil else { throw .alreadySubscribed }
            guard subscriptions.mayFollow(topic, token: self.token) else { throw .tooManyTopics }
            subscriptions.subscribe([self.token], to: topic, at: now)
            return self.resource(topic, now)
        case .delete(let topic, let allowsMissing):
            guard subscriptions.unsubscribe(self.token, from: topic) || allowsMissing else { throw .noSuchProject }
            return "{}"
        case .list(let size, let start):
            let all = subscriptions.topics(of: self.token).sorted { $0.key < $1.key }
            let page = all.dropFirst(start).prefix(size)
            let items = page.map { self.resource($0.key, $0.value) }.joined(separator: ",")
            let next = start + page.count < all.count ? #","nextPageToken":"\#(start + page.count)""# : ""
            return page.isEmpty ? "{}" : #"{"topicSubscriptions":[\#(items)]\#(next)}"#
        }
    }

    private func resource(_ topic: String, _ time: Date) -> String {
        let name = "projects/\(self.v1.project)/registrations/\(self.token)/topicSubscriptions/\(topic)"
        let time = time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        return #"{"name":\#(JSONValue.quoted(name)),"topicName":\#(JSONValue.quoted(topic)),"createTime":"\#(time)"}"#
    }
}

extension V1Failure {
    fileprivate static let alreadySubscribed = Self(
        code: 409,
        status: "ALREADY_EXISTS",
        message: "Requested entity already exists",
        details: []
    )

    fileprivate static let tooManyTopics = Self(
        code: 400,
        status: "FAILED_PRECONDITION",
        message: "The registration follows too many topics.",
        details: []
    )
}
