import NIOCore
import StrictJSON

@testable import FCMModel

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
        let answer: LegacyResponse?
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
        var answer: LegacyResponse?
        if upstream.takeIfPresent("transport") == nil {
            let status = try upstream.take("status").integer()
            let retryAfter = try upstream.takeIfPresent("headers").map { try Self.retryAfter(in: $0) } ?? nil
            let body: ByteBuffer
            switch try upstream.take("body") {
            case .string(let text): body = ByteBuffer(string: text)
            case let json: body = json.serialised()
            }
            answer = LegacyResponse(status: status, retryAfter: retryAfter, body: body)
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
