import NIOCore
import StrictJSON
import Testing

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

    /// The vectors of this direction; the other direction is no concern of the legacy protocol's reader.
    static func all() throws -> [LegacyOutcomeVector] {
        try VectorFile.read("responses")
            .compactMap { value in
                var members = try value.members()
                switch try members.take("direction").text() {
                case "legacy_to_outcome": return try LegacyOutcomeVector(&members)
                case "v1_to_legacy": return nil
                case let direction: throw VectorProblem("unknown direction \(direction)")
                }
            }
    }

    private init(_ members: inout VectorMembers) throws {
        self.id = try members.takeHeading()
        self.now = try members.take("now").integer()
        let tokens = try members.take("tokens").elements().map { try $0.text() }
        self.target = try Self.target(members.take("target").text(), tokens)
        self.response = try Self.response(members.take("response"))
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
        case ("condition", nil, _):
            return .condition(try TopicCondition(parsing: "'news' in topics"))
        default: break
        }
        throw VectorProblem("unknown target \(kind) with \(tokens.count) tokens")
    }

    private static func response(_ value: VectorJSON) throws -> UpstreamResponse {
        var members = try value.members()
        let status = try members.take("status").integer()
        let body: ByteBuffer
        switch try members.take("body") {
        case .string(let text): body = ByteBuffer(string: text)
        case let json: body = json.serialised()
        }
        var retryAfter: String?
        var headers = try members.take("headers").members()
        for header in headers.takeAll() {
            guard header.key.lowercased() == "retry-after", retryAfter == nil else {
                throw VectorProblem("unknown header \(header.key)")
            }
            retryAfter = try header.value.text()
        }
        try members.finish()
        return UpstreamResponse(status: status, retryAfter: retryAfter, body: body)
    }

    private static func result(_ value: VectorJSON) throws -> Result {
        var members = try value.members()
        let result: Result
        switch try members.take("status").text() {
        case "accepted":
            result = .accepted(
                messageID: try members.take("message_id").text(),
                replacementToken: try members.takeIfPresent("replacement_token")?.text()
            )
        case "rejected":
            result = .rejected(
                code: try members.take("code").text(),
                isRetryable: try members.take("retryable").flag(),
                action: try members.takeIfPresent("action")?.text()
            )
        case let status:
            throw VectorProblem("unknown status \(status)")
        }
        try members.finish()
        return result
    }

    private static func group(_ value: VectorJSON) throws -> Expectation {
        var members = try value.members()
        let group = Expectation.group(
            success: try members.take("success").integer(),
            failure: try members.take("failure").integer(),
            failedTokens: try members.take("failed_tokens").elements().map { try $0.text() },
            isRetryable: try members.take("retryable").flag()
        )
        try members.finish()
        return group
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

    /// The vectors of this direction; the other one is the legacy reader's.
    static func all() throws -> [V1AnswerVector] {
        try VectorFile.read("responses")
            .compactMap { value in
                var members = try value.members()
                switch try members.take("direction").text() {
                case "v1_to_legacy": return try V1AnswerVector(&members)
                case "legacy_to_outcome": return nil
                case let direction: throw VectorProblem("unknown direction \(direction)")
                }
            }
    }

    private init(_ members: inout VectorMembers) throws {
        self.id = try members.takeHeading()
        self.now = try members.take("now").integer()

        var target = try members.take("target").members()
        let kind = try Self.kind(target.take("kind").text())
        self.kind = kind
        let recipients = kind == .tokens ? try target.take("recipients").integer() : 1
        self.shape = kind == .topic || kind == .condition ? .single : .results(count: recipients)
        self.localErrors = try TranslationVector.localErrors(target.takeIfPresent("local_errors"))
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
        self.retryAfter = try Self.headers(expect.take("headers"))["retry-after"]
        try expect.finish()
        try members.finish()
    }

    private static func kind(_ name: String) throws -> TargetKind {
        switch name {
        case "multicast": return .tokens
        case "token", "topic", "condition", "group":
            guard let kind = TargetKind(rawValue: name) else { break }
            return kind
        default: break
        }
        throw VectorProblem("unknown target \(name)")
    }

    private static func answer(_ value: VectorJSON) throws -> Answer {
        var members = try value.members()
        if let transport = members.takeIfPresent("transport") {
            try members.finish()
            return .transport(try transport.text())
        }
        let status = try members.take("status").integer()
        let body: ByteBuffer
        switch try members.take("body") {
        case .string(let text): body = ByteBuffer(string: text)
        case let json: body = json.serialised()
        }
        let headers = try members.takeIfPresent("headers").map { try Self.headers($0) } ?? [:]
        try members.finish()
        return .response(
            UpstreamResponse(
                status: status,
                retryAfter: headers["retry-after"],
                contentType: headers["content-type"],
                body: body
            )
        )
    }

    /// Headers by their names in lower case; others than these two would go unnoticed.
    private static func headers(_ value: VectorJSON) throws -> [String: String] {
        var headers: [String: String] = [:]
        var members = try value.members()
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
        let others = headers.takeAll()
        let body: ByteBuffer
        if let text = members.takeIfPresent("raw_body") {
            body = ByteBuffer(string: try text.text())
        } else {
            body = members.takeIfPresent("body")?.serialised() ?? ByteBuffer()
        }
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
            isRouteLevel: auth != "valid" || method == "PUT"
                || (others.contains { $0.key == "project_id" } && status == 401)
        )
    }

    private static func response(_ id: String, _ members: inout VectorMembers) throws -> Response {
        let now = try members.take("now").integer()
        var upstream = try members.take("upstream").members()
        var answer: UpstreamResponse?
        if upstream.takeIfPresent("transport") == nil {
            let status = try upstream.take("status").integer()
            let retryAfter = try upstream.takeIfPresent("headers").map { try Self.retryAfter(in: $0) } ?? nil
            let body: ByteBuffer
            switch try upstream.take("body") {
            case .string(let text): body = ByteBuffer(string: text)
            case let json: body = json.serialised()
            }
            answer = UpstreamResponse(status: status, retryAfter: retryAfter, body: body)
        }
        try upstream.finish()
        var expect = try members.take("expect").members()
        let status = try expect.take("status").integer()
        let retryAfter = try Self.retryAfter(in: expect.take("headers"))
        let body = try expect.take("body")
        let error: String? =
            switch try expect.take("error") {
            case .null: nil
            case let name: try name.text()
            }
        let isRetryable = try expect.take("retryable").flag()
        try expect.finish()
        return Response(
            id: id,
            now: now,
            answer: answer,
            status: status,
            retryAfter: retryAfter,
            body: body,
            error: error,
            isRetryable: isRetryable
        )
    }

    private static func retryAfter(in headers: VectorJSON) throws -> String? {
        var members = try headers.members()
        let retryAfter = try members.takeIfPresent("Retry-After")?.text()
        try members.finish()
        return retryAfter
    }
}
