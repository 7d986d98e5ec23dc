import Foundation
import Testing

/// One vector of `validate.json` or `plaintext.json`: a request to `/fcm/send` and what the contract says about it.
struct SendVector: Sendable, CustomTestStringConvertible {
    let id: String
    let body: [UInt8]
    let method: String
    let contentType: String?
    let authorization: String?
    let isAccepted: Bool
    let status: Int
    let refusalClass: String?
    /// The exact answer, where it is text.
    let answerText: String?
    let payloadBytes: Int?
    let recipients: Int?

    /// The equal JSON request of a form.
    let asJSON: [UInt8]?

    var testDescription: String { self.id }

    static func validate() throws -> [Self] {
        try VectorFile.read("validate").map { try Self($0, defaultType: "application/json") }
    }

    static func plaintext() throws -> [Self] {
        try VectorFile.read("plaintext").map { try Self($0, defaultType: nil) }
    }

    private init(_ members: [String: Any], defaultType: String?) throws {
        try VectorFile.allow(
            ["id", "why", "ref", "request", "body", "body_b64", "method", "headers", "auth", "content_type", "expect"],
            in: members
        )
        guard let id = members["id"] as? String, let expect = members["expect"] as? [String: Any] else {
            throw VectorFile.Problem(message: "incomplete send vector")
        }
        try VectorFile.allow(
            [
                "outcome", "target", "recipients", "payload_bytes", "local_errors", "status", "class", "body",
                "content_type", "as_json",
            ],
            in: expect
        )
        self.id = id
        self.body = try Self.body(members)
        self.method = members["method"] as? String ?? "POST"
        let headers = members["headers"] as? [String: String] ?? [:]
        self.contentType = headers["Content-Type"] ?? members["content_type"] as? String ?? defaultType
        self.authorization = try Self.authorization(members["auth"] as? String ?? "valid")
        self.isAccepted = expect["outcome"] as? String == "accepted"
        self.status = expect["status"] as? Int ?? 200
        self.refusalClass = expect["class"] as? String
        self.answerText = expect["body"] as? String
        self.payloadBytes = expect["payload_bytes"] as? Int
        self.recipients = expect["recipients"] as? Int
        self.asJSON = try expect["as_json"].map { try Self.serialise($0) }
    }

    private static func body(_ members: [String: Any]) throws -> [UInt8] {
        if let text = members["body"] as? String { return Array(text.utf8) }
        if let base64 = members["body_b64"] as? String, let data = Data(base64Encoded: base64) { return Array(data) }
        guard let request = members["request"] else { throw VectorFile.Problem(message: "no body") }
        return try self.serialise(request)
    }

    private static func serialise(_ value: Any) throws -> [UInt8] {
        Array(try JSONSerialization.data(withJSONObject: value, options: .withoutEscapingSlashes))
    }

    private static func authorization(_ kind: String) throws -> String? {
        switch kind {
        case "valid": return "key=AAAA-known"
        case "none": return nil
        case "malformed": return "something"
        case "unknown_key": return "key=AAAA-unknown"
        default: throw VectorFile.Problem(message: "unknown auth \(kind)")
        }
    }
}
