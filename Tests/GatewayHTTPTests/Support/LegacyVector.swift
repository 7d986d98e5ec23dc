import Foundation
import Testing

/// One vector of `validate.json` or `plaintext.json`, as a request to a listener.
struct LegacyVector: Sendable, CustomTestStringConvertible {
    let id: String
    let method: String
    let auth: String
    let headers: [String: String]
    let body: [UInt8]
    let expectation: JSON
    /// Whether more than the body decides.
    let isRouteLevel: Bool

    var testDescription: String { self.id }

    /// The vectors of `validate.json` that say something of the request beside its body.
    static func routeLevel() throws -> [LegacyVector] {
        try self.read("validate").filter(\.isRouteLevel)
    }

    /// The vectors of `plaintext.json`.
    static func forms() throws -> [LegacyVector] {
        try self.read("plaintext")
    }

    private static func read(_ name: String) throws -> [LegacyVector] {
        try JSON.vectors(name).map { try LegacyVector($0, isForm: name == "plaintext") }
    }

    private init(_ vector: JSON, isForm: Bool) throws {
        self.id = try #require(vector["id"]?.text)
        self.method = vector["method"]?.text ?? "POST"
        self.auth = vector["auth"]?.text ?? "valid"
        self.isRouteLevel = vector["method"] != nil || vector["auth"] != nil || vector["headers"] != nil
        var headers: [String: String] = isForm ? [:] : ["Content-Type": "application/json"]
        if let type = vector["content_type"]?.text { headers["Content-Type"] = type }
        for name in vector["headers"]?.keys ?? [] { headers[name] = vector["headers"]?[name]?.text }
        self.headers = headers
        if let request = vector["request"] {
            // Route-level vectors carry texts alone, so that nothing depends on how a number is written.
            self.body = Array(request.encodedTexts.utf8)
        } else if let base64 = vector["body_b64"]?.text {
            self.body = Array(try #require(Data(base64Encoded: base64)))
        } else {
            self.body = Array(try #require(vector["body"]).expandedText.utf8)
        }
        self.expectation = try #require(vector["expect"])
    }
}

extension JSON {
    /// A text in which the vectors' markers are expanded.
    fileprivate var expandedText: String {
        if let text = self.text { return text }
        if let text = self["$repeat"] {
            return String(repeating: text.expandedText, count: self["times"]?.int ?? 0)
        }
        return (self["$concat"]?.elements ?? []).map(\.expandedText).joined()
    }

    /// An object of texts as JSON.
    fileprivate var encodedTexts: String {
        let members = self.keys.sorted().map { "\"\($0)\":\"\(self[$0]?.text ?? "")\"" }
        return "{\(members.joined(separator: ","))}"
    }
}
