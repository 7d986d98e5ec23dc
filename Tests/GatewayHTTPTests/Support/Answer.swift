import EventLoopHTTP
import GatewayTestKit
import HTTPTypes
import NIOCore
import StrictJSON
import Testing

/// A listener's answer, with its body as text.
struct Answer: Sendable {
    var status: Int
    var headers: HTTPFields
    var body: String

    init(_ response: HTTPServerResponse) {
        self.status = response.status.code
        self.headers = response.headers.fields
        self.body = String(buffer: response.body)
    }

    func header(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { self.headers[$0] }
    }

    /// The body as JSON; the strict reader, which refuses repeated names, must accept it too.
    var json: JSON {
        get throws {
            _ = try JSONDocument(parsing: ByteBuffer(string: self.body))
            return try JSON(parsing: self.body)
        }
    }

    /// Checks that an answer has the common shape of problems; returns the problem.
    func problem(sourceLocation: SourceLocation = #_sourceLocation) throws -> JSON {
        let json = try self.json
        #expect(self.header("Content-Type") == "application/problem+json", sourceLocation: sourceLocation)
        #expect(json["status"]?.int == self.status, sourceLocation: sourceLocation)
        let code = json["code"]?.text ?? ""
        #expect(json["type"]?.text == "/problems/\(code)", sourceLocation: sourceLocation)
        for name in ["title", "detail"] {
            #expect(json[name]?.text?.isEmpty == false, "\(name) is missing", sourceLocation: sourceLocation)
        }
        #expect(json["retry_after"]?.int.map(String.init) == self.header("Retry-After"), sourceLocation: sourceLocation)
        if self.status == 429 || self.status == 503 {
            #expect(json["retry_after"]?.int ?? 0 >= 1, sourceLocation: sourceLocation)
        }
        return json
    }

    /// The code of an answer that must be a problem.
    func code(sourceLocation: SourceLocation = #_sourceLocation) throws -> String? {
        try self.problem(sourceLocation: sourceLocation)["code"]?.text
    }

    /// Checks an answer that must be a problem with a status and a code; returns the problem.
    @discardableResult
    func expectProblem(
        _ status: Int,
        _ code: String,
        _ comment: Comment? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> JSON {
        #expect(self.status == status, comment, sourceLocation: sourceLocation)
        let problem = try self.problem(sourceLocation: sourceLocation)
        #expect(problem["code"]?.text == code, comment, sourceLocation: sourceLocation)
        return problem
    }

    /// Checks an answer that must be a Google API error.
    func expectError(
        _ status: String,
        _ errorCode: String? = nil,
        field: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(self.header("Content-Type") == "application/json; charset=UTF-8", sourceLocation: sourceLocation)
        let json = try self.json
        #expect(json.keys == ["error"], sourceLocation: sourceLocation)
        let error = try #require(json["error"], sourceLocation: sourceLocation)
        #expect(error["code"]?.int == self.status, sourceLocation: sourceLocation)
        #expect(error["status"]?.text == status, sourceLocation: sourceLocation)
        #expect(error["message"]?.text?.isEmpty == false, sourceLocation: sourceLocation)
        let details = error["details"]?.elements ?? []
        let codes = details.compactMap { $0["errorCode"]?.text }
        #expect(codes == (errorCode.map { [$0] } ?? []), sourceLocation: sourceLocation)
        if let field {
            let fields = details.flatMap { $0["fieldViolations"]?.elements ?? [] }.compactMap { $0["field"]?.text }
            #expect(fields == [field], sourceLocation: sourceLocation)
        }
    }

    /// A problem's faults as `pointer: code`.
    func faults(sourceLocation: SourceLocation = #_sourceLocation) throws -> [String] {
        try self.problem(sourceLocation: sourceLocation)["errors"]?.elements
            .map { "\($0["pointer"]?.text ?? "?"): \($0["code"]?.text ?? "?")" } ?? []
    }
}

extension String {
    /// True if this is a UUID of version 7 in its usual form.
    var isUUIDv7: Bool {
        self.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil
    }
}
