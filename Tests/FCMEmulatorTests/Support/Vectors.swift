import Foundation
import Testing

@testable import FCMEmulator

/// The conformance vectors in `Tests/Vectors`, with their markers expanded.
enum VectorFile {
    struct Problem: Error {
        let message: String
    }

    /// The vectors of one file.
    static func read(_ name: String) throws -> [[String: Any]] {
        let file = try self.directory().appending(path: name + ".json")
        let document = try JSONSerialization.jsonObject(with: try Data(contentsOf: file))
        guard let members = document as? [String: Any], let vectors = members["vectors"] as? [Any] else {
            throw Problem(message: "\(name) has no vectors")
        }
        let expanded = try vectors.map { try self.expand($0) }.compactMap { $0 as? [String: Any] }
        guard expanded.count == members["count"] as? Int else { throw Problem(message: "\(name): the count is wrong") }
        return expanded
    }

    /// Refuses members a test does not understand.
    static func allow(_ names: Set<String>, in members: [String: Any]) throws {
        let unknown = Set(members.keys).subtracting(names)
        guard unknown.isEmpty else { throw Problem(message: "unknown members \(unknown.sorted())") }
    }

    /// The first directory above this file that is the project's root.
    private static func directory() throws -> URL {
        var root = URL(filePath: #filePath)
        while root.path != "/" {
            root.deleteLastPathComponent()
            let vectors = root.appending(path: "Tests/Vectors")
            let manifest = root.appending(path: "Package.swift")
            let files = FileManager.default
            if files.fileExists(atPath: manifest.path), files.fileExists(atPath: vectors.path) { return vectors }
        }
        throw Problem(message: "there is no Tests/Vectors above \(#filePath)")
    }

    private static func expand(_ value: Any) throws -> Any {
        if let list = value as? [Any] { return try list.map { try self.expand($0) } }
        guard let members = value as? [String: Any] else { return value }
        switch Set(members.keys) {
        case ["$repeat", "times"]:
            guard let text = members["$repeat"] as? String, let times = members["times"] as? Int else { break }
            return String(repeating: text, count: times)
        case ["$concat"]:
            guard let parts = try self.expand(members["$concat"] ?? []) as? [String] else { break }
            return parts.joined()
        case ["$list", "count"]:
            guard let count = members["count"] as? Int, let template = members["$list"] else { break }
            return try (0..<count).map { try self.expand(self.substitute(template, index: $0)) }
        default:
            return try members.mapValues { try self.expand($0) }
        }
        throw Problem(message: "bad marker \(members.keys)")
    }

    private static func substitute(_ value: Any, index: Int) -> Any {
        switch value {
        case let text as String: text.replacing("{i}", with: String(index))
        case let list as [Any]: list.map { self.substitute($0, index: index) }
        case let members as [String: Any]: members.mapValues { self.substitute($0, index: index) }
        default: value
        }
    }
}

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

    var request: ReceivedRequest {
        let headers: KeyValuePairs = ["Content-Type": self.contentType, "Authorization": self.authorization]
        return ReceivedRequest(method: self.method, "/fcm/send", headers: headers, body: self.body)
    }

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

extension ReceivedRequest {
    /// A request as an endpoint gets it, in 1970; headers without a value are left out.
    init(
        method: String = "POST",
        _ target: String,
        headers: KeyValuePairs<String, String?> = [:],
        body: [UInt8],
        at time: Date = Date(timeIntervalSince1970: 0)
    ) {
        let fields = headers.compactMap { name, value in value.map { HeaderField(name: name, value: $0) } }
        self.init(time: time, method: method, target: target, headers: fields, bodyBytes: body)
    }
}

/// One vector of `conditions.json`.
struct ConditionVector: Sendable, CustomTestStringConvertible {
    struct Evaluation: Sendable {
        let subscribed: Set<String>
        let matches: Bool
    }

    let id: String
    let condition: String
    let isLegacyValid: Bool
    let isV1Valid: Bool
    let canonical: String?
    let topics: [String]?
    let evaluations: [Evaluation]

    var testDescription: String { self.id }

    static func all() throws -> [Self] {
        try VectorFile.read("conditions").map(Self.init)
    }

    private init(_ members: [String: Any]) throws {
        try VectorFile.allow(
            [
                "id", "why", "ref", "condition", "legacy_valid", "v1_valid", "canonical", "operators", "topics",
                "evaluate",
            ],
            in: members
        )
        guard let id = members["id"] as? String, let condition = members["condition"] as? String,
            let isLegacyValid = members["legacy_valid"] as? Bool, let isV1Valid = members["v1_valid"] as? Bool
        else {
            throw VectorFile.Problem(message: "incomplete condition vector")
        }
        self.id = id
        self.condition = condition
        self.isLegacyValid = isLegacyValid
        self.isV1Valid = isV1Valid
        self.canonical = members["canonical"] as? String
        self.topics = members["topics"] as? [String]
        self.evaluations = try (members["evaluate"] as? [[String: Any]] ?? [])
            .map { evaluation in
                guard let subscribed = evaluation["subscribed"] as? [String],
                    let matches = evaluation["matches"] as? Bool
                else {
                    throw VectorFile.Problem(message: "\(id): incomplete evaluation")
                }
                return Evaluation(subscribed: Set(subscribed), matches: matches)
            }
    }
}

/// One vector of `translate.json`: the v1 requests a legacy request becomes.
struct TranslationVector: Sendable, CustomTestStringConvertible {
    let id: String
    let calls: [String]

    var testDescription: String { self.id }

    static func all() throws -> [Self] {
        try VectorFile.read("translate").map(Self.init)
    }

    private init(_ members: [String: Any]) throws {
        try VectorFile.allow(["id", "why", "ref", "now", "request", "body", "expect"], in: members)
        guard let id = members["id"] as? String, let expect = members["expect"] as? [String: Any] else {
            throw VectorFile.Problem(message: "incomplete translation vector")
        }
        self.id = id
        self.calls = try (expect["calls"] as? [Any] ?? [])
            .map { String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self) }
    }
}
