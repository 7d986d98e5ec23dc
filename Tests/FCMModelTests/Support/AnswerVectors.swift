import NIOCore
import StrictJSON
import Testing
import VectorTestKit

@testable import FCMModel

/// One vector of `responses.json` in the direction `legacy_to_outcome`: a legacy upstream's answer and its meaning.
struct LegacyOutcomeVector: Sendable, CustomTestStringConvertible {
    /// The meaning, as far as the vector states it.
    enum Expectation: Sendable {
        case results([Result])
        case group(success: Int, failure: Int, failedTokens: [String], isRetryable: Bool)
    }

    /// The outcome of one recipient in the words of the REST contract.
    enum Result: Sendable, Hashable {
        case accepted(messageID: String, replacementToken: String?)
        case rejected(code: String, isRetryable: Bool, action: String?)
    }

    let id: String
    let now: Int
    let target: Target
    let response: UpstreamResponse
    let expectation: Expectation
    let retryAfter: Int?

    var testDescription: String { self.id }

    static func all() throws -> [LegacyOutcomeVector] {
        try VectorFile.responses("legacy_to_outcome").map { try LegacyOutcomeVector($0) }
    }

    private init(_ vector: VectorMembers) throws {
        var members = vector
        self.id = try members.takeHeading()
        self.now = try members.take("now").integer()
        self.target = try Self.target(members.take("target").text(), members.take("tokens").texts())
        self.response = try members.take("response").object { try UpstreamResponse(&$0) }
        var expect = try members.take("expect").members()
        if let results = expect.takeIfPresent("results") {
            self.expectation = .results(try results.elements().map { try Self.result($0) })
        } else {
            self.expectation = try Self.group(expect.take("group"))
        }
        self.retryAfter = try expect.takeIfPresent("retry_after")?.integer()
        try expect.finish()
        try members.finish()
    }

    private static func target(_ kind: String, _ tokens: [String]) throws -> Target {
        switch (kind, tokens.first, tokens.count) {
        case ("token", let token?, 1): return .token(token)
        case ("group", let key?, 1): return .notificationKey(key)
        case ("multicast", _?, _): return .tokens(tokens)
        case ("topic", nil, _):
            guard let name = TopicName("news") else { break }
            return .topic(name)
        case ("condition", nil, _): return .condition(try TopicCondition(parsing: "'news' in topics"))
        default: break
        }
        throw VectorProblem("unknown target \(kind) with \(tokens.count) tokens")
    }

    private static func result(_ value: VectorJSON) throws -> Result {
        try value.object { members in
            switch try members.take("status").text() {
            case "accepted":
                return .accepted(
                    messageID: try members.take("message_id").text(),
                    replacementToken: try members.takeIfPresent("replacement_token")?.text()
                )
            case "rejected":
                return .rejected(
                    code: try members.take("code").text(),
                    isRetryable: try members.take("retryable").flag(),
                    action: try members.takeIfPresent("action")?.text()
                )
            case let status: throw VectorProblem("unknown status \(status)")
            }
        }
    }

    private static func group(_ value: VectorJSON) throws -> Expectation {
        try value.object { members in
            .group(
                success: try members.take("success").integer(),
                failure: try members.take("failure").integer(),
                failedTokens: try members.take("failed_tokens").texts(),
                isRetryable: try members.take("retryable").flag()
            )
        }
    }
}

/// One vector of `responses.json` in the direction `v1_to_legacy`: answers of a v1 upstream, and what a legacy client
/// gets.
struct V1AnswerVector: Sendable, CustomTestStringConvertible {
    /// What came back of one call.
    enum Answer: Sendable {
        case response(UpstreamResponse)
        /// Nothing, for this reason.
        case transport(String)
    }

    let id: String
    let now: Int
    let kind: TargetKind
    let shape: LegacyReplyWriter.Shape
    let localErrors: [Int: LegacyErrorName]
    let knownMembers: Int?
    let format: LegacyFormat
    let answers: [Answer]
    let status: Int
    let body: VectorJSON
    let retryAfter: String?

    var testDescription: String { self.id }

    static func all() throws -> [V1AnswerVector] {
        try VectorFile.responses("v1_to_legacy").map { try V1AnswerVector($0) }
    }

    private init(_ vector: VectorMembers) throws {
        var members = vector
        self.id = try members.takeHeading()
        self.now = try members.take("now").integer()

        var target = try members.take("target").members()
        let word = try target.take("kind").text()
        let kinds: [String: TargetKind] = [
            "multicast": .tokens, "token": .token, "topic": .topic, "condition": .condition, "group": .group,
        ]
        guard let kind = kinds[word] else { throw VectorProblem("unknown target \(word)") }
        self.kind = kind
        let recipients = kind == .tokens ? try target.take("recipients").integer() : 1
        self.shape = kind == .topic || kind == .condition ? .single : .results(count: recipients)
        self.localErrors = try target.takeIfPresent("local_errors").textsByIndex()
            .mapValues { name in
                guard let error = LegacyErrorName(rawValue: name) else { throw VectorProblem("unknown error \(name)") }
                return error
            }
        self.knownMembers = try target.takeIfPresent("known_members")?.integer()
        try target.finish()

        switch try members.take("format").text() {
        case "json": self.format = .json
        case "plain": self.format = .form
        case let format: throw VectorProblem("unknown format \(format)")
        }
        self.answers = try members.take("upstream").elements().map { try Self.answer($0) }

        var expect = try members.take("expect").members()
        self.status = try expect.take("status").integer()
        self.body = try expect.take("body")
        self.retryAfter = try expect.take("headers").headers()["retry-after"]
        try expect.finish()
        try members.finish()
    }

    private static func answer(_ value: VectorJSON) throws -> Answer {
        try value.object { members in
            if let reason = members.takeIfPresent("transport") { return .transport(try reason.text()) }
            return .response(try UpstreamResponse(&members))
        }
    }
}

/// One vector of `device-groups.json` that says something of a request or of an answer.
enum GroupVector: Sendable {
    /// A request, by the parts of it that the model reads.
    struct Request: Sendable {
        let id: String
        let method: String
        let contentType: String
        let body: ByteBuffer
        let query: String?
        /// What FCM gets; `nil` for a request that is refused.
        let upstream: VectorJSON?
        let status: Int?
        let replyBody: VectorJSON?
        /// Whether what decides stands outside body and query: the credential, the sender id or the method.
        let isRouteLevel: Bool
    }

    /// An answer and what is made of it.
    struct Response: Sendable {
        let id: String
        let now: Int
        /// `nil` where no answer came.
        let answer: UpstreamResponse?
        let status: Int
        let retryAfter: String?
        let body: VectorJSON
        let error: String?
        let isRetryable: Bool
    }

    case request(Request)
    case response(Response)
    case scenario(id: String)

    static func all() throws -> [GroupVector] {
        try VectorFile.read("device-groups").map { try GroupVector($0) }
    }

    init(_ value: VectorJSON) throws {
        var members = try value.members()
        let id = try members.take("id").text()
        _ = members.takeIfPresent("why")
        _ = members.takeIfPresent("ref")
        switch try members.take("kind").text() {
        case "request": self = .request(try Self.request(id, &members))
        case "response": self = .response(try Self.response(id, &members))
        case "scenario":
            _ = try members.take("steps")
            _ = members.takeIfPresent("invalid_tokens")
            self = .scenario(id: id)
        case let kind: throw VectorProblem("unknown kind \(kind)")
        }
        try members.finish()
    }

    private static func request(_ id: String, _ members: inout VectorMembers) throws -> Request {
        let method = try members.take("method").text()
        let auth = try members.take("auth").text()
        var headers = try members.take("headers").members()
        let contentType = try headers.takeIfPresent("Content-Type")?.text() ?? "application/json"
        let namesSender = headers.takeAll().contains { $0.key == "project_id" }
        let body = (members.takeIfPresent("raw_body") ?? members.takeIfPresent("body"))?.body() ?? ByteBuffer()
        let query = try members.takeIfPresent("query")?.text()
        var expect = try members.take("expect").members()
        let action = try expect.take("action").text()
        let upstream = expect.takeIfPresent("upstream")
        let status = try expect.takeIfPresent("status")?.integer()
        let replyBody = expect.takeIfPresent("body")
        try expect.finish()
        guard (action == "forward") == (upstream != nil) else { throw VectorProblem("\(id) has the action \(action)") }
        return Request(
            id: id,
            method: method,
            contentType: contentType,
            body: body,
            query: query,
            upstream: upstream,
            status: status,
            replyBody: replyBody,
            isRouteLevel: auth != "valid" || method == "PUT" || (namesSender && status == 401)
        )
    }

    private static func response(_ id: String, _ members: inout VectorMembers) throws -> Response {
        let now = try members.take("now").integer()
        var upstream = try members.take("upstream").members()
        let answer = try upstream.takeIfPresent("transport") == nil ? UpstreamResponse(&upstream) : nil
        try upstream.finish()
        var expect = try members.take("expect").members()
        let error = try expect.take("error")
        let response = Response(
            id: id,
            now: now,
            answer: answer,
            status: try expect.take("status").integer(),
            retryAfter: try expect.take("headers").headers()["retry-after"],
            body: try expect.take("body"),
            error: try error.isNull ? nil : error.text(),
            isRetryable: try expect.take("retryable").flag()
        )
        try expect.finish()
        return response
    }
}

extension UpstreamResponse {
    /// An answer that a vector's members describe.
    fileprivate init(_ members: inout VectorMembers) throws {
        let headers = try members.takeIfPresent("headers")?.headers() ?? [:]
        self.init(
            status: try members.take("status").integer(),
            retryAfter: headers["retry-after"],
            contentType: headers["content-type"],
            body: try members.take("body").body()
        )
    }
}

extension UpstreamResponse {
    init(_ status: Int, _ body: String, retryAfter: String? = nil, contentType: String? = nil) {
        let body = ByteBuffer(string: body)
        self.init(status: status, retryAfter: retryAfter, contentType: contentType, body: body)
    }
}

extension V1Reading {
    var rejection: Rejection? { if case .rejected(let rejection) = self.answer { rejection } else { nil } }
}

extension TopicReading {
    var rejection: Rejection? { if case .rejected(let rejection) = self.answer { rejection } else { nil } }
}

extension VectorJSON {
    /// Headers by their names in lower case; others than these two would go unnoticed.
    fileprivate func headers() throws -> [String: String] {
        var headers: [String: String] = [:]
        var members = try self.members()
        for header in members.takeAll() {
            let name = header.key.lowercased()
            guard ["retry-after", "content-type"].contains(name), headers[name] == nil else {
                throw VectorProblem("unknown header \(name)")
            }
            headers[name] = try header.value.text()
        }
        return headers
    }
}

extension VectorFile {
    /// The vectors of `responses.json` of one of its two directions.
    fileprivate static func responses(_ direction: String) throws -> [VectorMembers] {
        try Self.read("responses")
            .compactMap { vector in
                var members = try vector.members()
                let own = try members.take("direction").text()
                guard ["legacy_to_outcome", "v1_to_legacy"].contains(own) else {
                    throw VectorProblem("unknown direction \(own)")
                }
                return own == direction ? members : nil
            }
    }
}
