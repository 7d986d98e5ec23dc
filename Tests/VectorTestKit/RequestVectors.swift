import Foundation
package import NIOCore

/// One vector of `validate.json`: a request to `/fcm/send` and what the protocol makes of it.
package struct ValidationVector: Sendable, CustomStringConvertible {
    /// The expected outcome.
    package enum Expectation: Sendable {
        case accepted(Accepted)
        case rejected(Rejected)
    }

    /// What an accepted request is read as.
    package struct Accepted: Sendable {
        package let target: String
        package let recipients: Int
        package let payloadBytes: Int
        package let localErrors: [Int: String]
    }

    /// What a refused request is answered.
    package struct Rejected: Sendable {
        package let status: Int
        package let reason: String
        /// `nil` where the text is free.
        package let body: VectorJSON?
        /// The media type of an answer that is no JSON.
        package let contentType: String?
        package let payloadBytes: Int?
    }

    package let id: String
    package let body: ByteBuffer
    /// What decides before the body does; `nil` where the vector leaves the default.
    package let method: String?
    package let auth: String?
    package let headers: [String: String]
    package let expectation: Expectation

    package var description: String { self.id }

    /// Whether the vector says something about the request beside its body.
    package var describesRoute: Bool { self.method != nil || self.auth != nil || !self.headers.isEmpty }

    /// Whether the request reaches the decoder: nothing before the body refuses it, and the body is JSON by its type.
    package var reachesDecoder: Bool {
        let type = self.headers.first { $0.key.lowercased() == "content-type" }?.value ?? "application/json"
        let mediaType = type.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        return (self.method ?? "POST") == "POST" && (self.auth ?? "valid") == "valid" && mediaType == "application/json"
    }

    package static func all() throws -> [ValidationVector] {
        try VectorFile.read("validate").map { try ValidationVector($0) }
    }

    private init(_ value: VectorJSON) throws {
        var members = try value.members()
        self.id = try members.takeHeading()
        self.body = try Self.body(&members)
        self.method = try members.takeIfPresent("method")?.text()
        self.auth = try members.takeIfPresent("auth")?.text()
        guard ["valid", "none", "malformed", "unknown_key"].contains(self.auth ?? "valid") else {
            throw VectorProblem("\(self.id) has an unknown credential")
        }
        var headers: [String: String] = [:]
        if var given = try members.takeIfPresent("headers")?.members() {
            for header in given.takeAll() { headers[header.key] = try header.value.text() }
        }
        self.headers = headers
        self.expectation = try Self.expectation(members.take("expect"))
        try members.finish()
    }

    /// Exactly one of the three forms of a body.
    private static func body(_ members: inout VectorMembers) throws -> ByteBuffer {
        if let request = members.takeIfPresent("request") { return request.serialised() }
        if let text = members.takeIfPresent("body") { return ByteBuffer(string: try text.text()) }
        guard let bytes = Data(base64Encoded: try members.take("body_b64").text()) else {
            throw VectorProblem("the body is not in base 64")
        }
        return ByteBuffer(bytes: bytes)
    }

    private static func expectation(_ value: VectorJSON) throws -> Expectation {
        var members = try value.members()
        let expectation: Expectation
        switch try members.take("outcome").text() {
        case "accepted":
            expectation = .accepted(
                Accepted(
                    target: try members.take("target").text(),
                    recipients: try members.take("recipients").integer(),
                    payloadBytes: try members.take("payload_bytes").integer(),
                    localErrors: try members.takeIfPresent("local_errors").textsByIndex()
                )
            )
        case "rejected":
            expectation = .rejected(
                Rejected(
                    status: try members.take("status").integer(),
                    reason: try members.take("class").text(),
                    body: members.takeIfPresent("body"),
                    contentType: try members.takeIfPresent("content_type")?.text(),
                    payloadBytes: try members.takeIfPresent("payload_bytes")?.integer()
                )
            )
        case let outcome:
            throw VectorProblem("unknown outcome \(outcome)")
        }
        try members.finish()
        return expectation
    }
}

/// One vector of `plaintext.json`: a form sent to `/fcm/send` and what the protocol makes of it.
package struct FormVector: Sendable, CustomStringConvertible {
    /// The expected outcome.
    package enum Expectation: Sendable {
        /// The JSON request with the same meaning, and the payload's size where the vector states it.
        case accepted(json: ByteBuffer, payloadBytes: Int?)
        /// The answer, and how large the message was.
        case rejected(status: Int, contentType: String, body: String, payloadBytes: Int?)
        /// Refused by its credential, before anybody reads the body.
        case unauthorized(status: Int)
    }

    package let id: String
    package let contentType: String?
    package let body: ByteBuffer
    package let expectation: Expectation

    package var description: String { self.id }

    package static func all() throws -> [FormVector] {
        try VectorFile.read("plaintext").map { try FormVector($0) }
    }

    private init(_ value: VectorJSON) throws {
        var members = try value.members()
        self.id = try members.takeHeading()
        let type = try members.take("content_type")
        self.contentType = try type.isNull ? nil : type.text()
        self.body = ByteBuffer(string: try members.take("body").text())
        let auth = try members.takeIfPresent("auth")?.text()
        var expect = try members.take("expect").members()
        switch (try expect.take("outcome").text(), auth) {
        case ("accepted", nil):
            self.expectation = .accepted(
                json: try expect.take("as_json").serialised(),
                payloadBytes: try expect.takeIfPresent("payload_bytes")?.integer()
            )
        case ("rejected", nil):
            self.expectation = .rejected(
                status: try expect.take("status").integer(),
                contentType: try expect.take("content_type").text(),
                body: try expect.take("body").text(),
                payloadBytes: try expect.takeIfPresent("payload_bytes")?.integer()
            )
        case ("rejected", "none"):
            self.expectation = .unauthorized(status: try expect.take("status").integer())
        case let (outcome, auth):
            throw VectorProblem("unknown outcome \(outcome) with the credential \(auth ?? "valid")")
        }
        try expect.finish()
        try members.finish()
    }
}

/// One vector of `conditions.json`: an expression, who allows it, and what it comes to.
package struct ConditionVector: Sendable, CustomStringConvertible {
    /// What a valid expression is read as.
    package struct Reading: Sendable {
        package let canonical: String
        package let operators: Int
        package let topics: [String]
        /// Sets of topics, and true for each if the condition selects a device that follows them.
        package let evaluations: [(subscribed: Set<String>, matches: Bool)]
    }

    package let id: String
    package let condition: String
    package let isLegacyValid: Bool
    package let isV1Valid: Bool
    package let reading: Reading?

    package var description: String { self.id }

    package static func all() throws -> [ConditionVector] {
        try VectorFile.read("conditions").map { try ConditionVector($0) }
    }

    private init(_ value: VectorJSON) throws {
        var members = try value.members()
        self.id = try members.takeHeading()
        self.condition = try members.take("condition").text()
        self.isLegacyValid = try members.take("legacy_valid").flag()
        self.isV1Valid = try members.take("v1_valid").flag()
        if self.isLegacyValid || self.isV1Valid {
            self.reading = Reading(
                canonical: try members.take("canonical").text(),
                operators: try members.take("operators").integer(),
                topics: try members.take("topics").texts(),
                evaluations: try (members.takeIfPresent("evaluate")?.elements() ?? [])
                    .map { evaluation in
                        try evaluation.object { members in
                            (Set(try members.take("subscribed").texts()), try members.take("matches").flag())
                        }
                    }
            )
        } else {
            self.reading = nil
        }
        try members.finish()
    }
}

/// One vector of `translate.json`: a legacy request and the v1 calls that it becomes.
package struct TranslationVector: Sendable, CustomStringConvertible {
    package let id: String
    package let now: Int
    package let body: ByteBuffer
    package let calls: [VectorJSON]
    package let localErrors: [Int: String]

    package var description: String { self.id }

    package static func all() throws -> [TranslationVector] {
        try VectorFile.read("translate").map { try TranslationVector($0) }
    }

    private init(_ value: VectorJSON) throws {
        var members = try value.members()
        self.id = try members.takeHeading()
        self.now = try members.take("now").integer()
        self.body = try (members.takeIfPresent("request") ?? members.take("body")).body()
        var expect = try members.take("expect").members()
        self.calls = try expect.take("calls").elements()
        self.localErrors = try expect.takeIfPresent("local_errors").textsByIndex()
        try expect.finish()
        try members.finish()
    }
}
