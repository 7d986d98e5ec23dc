import NIOCore
import Testing

/// One vector of `plaintext.json`: a form sent to `/fcm/send` and what the protocol makes of it.
struct FormVector: Sendable, CustomTestStringConvertible {
    /// The expected outcome.
    enum Expectation: Sendable {
        /// The JSON request with the same meaning, and the payload's size where the vector states it.
        case accepted(json: ByteBuffer, payloadBytes: Int?)
        /// The answer, and how large the message was.
        case rejected(status: Int, contentType: String, body: String, payloadBytes: Int?)
        /// Refused by its credential, before anybody reads the body.
        case unauthorized(status: Int)
    }

    let id: String
    let contentType: String?
    let body: ByteBuffer
    let expectation: Expectation

    var testDescription: String { self.id }

    static func all() throws -> [FormVector] {
        try VectorFile.read("plaintext").map { try FormVector($0) }
    }

    private init(_ value: VectorJSON) throws {
        var members = try value.members()
        self.id = try members.takeHeading()
        switch try members.take("content_type") {
        case .null: self.contentType = nil
        case let type: self.contentType = try type.text()
        }
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
