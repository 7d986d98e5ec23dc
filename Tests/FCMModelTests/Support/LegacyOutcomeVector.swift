import FCMModel
import NIOCore
import Testing

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
    let response: LegacyResponse
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

    private static func response(_ value: VectorJSON) throws -> LegacyResponse {
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
        return LegacyResponse(status: status, retryAfter: retryAfter, body: body)
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
