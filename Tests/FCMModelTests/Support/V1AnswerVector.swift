import FCMModel
import NIOCore
import Testing

/// One vector of `responses.json` in the direction `v1_to_legacy`: answers of a v1 upstream, and what a legacy client
/// gets.
struct V1AnswerVector: Sendable, CustomTestStringConvertible {
    /// What came back of one call.
    enum Answer: Sendable {
        case response(V1Response)
        /// Nothing, for this reason.
        case transport(String)
    }

    let id: String
    let now: Int
    let kind: TargetKind
    let shape: LegacyReply.Shape
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
            V1Response(
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
