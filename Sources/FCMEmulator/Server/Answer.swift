import HTTPTypes
import Hummingbird
import NIOCore

/// One HTTP answer.
struct Answer: Sendable, Equatable {
    let status: Int
    let headers: [HeaderField]
    let body: String

    init(status: Int, contentType: String?, body: String, headers: [HeaderField] = []) {
        let hasOwnType = headers.contains { $0.name.lowercased() == "content-type" }
        let type = hasOwnType ? nil : contentType
        self.status = status
        self.headers = (type.map { [HeaderField(name: "Content-Type", value: $0)] } ?? []) + headers
        self.body = body
    }

    /// JSON, by default with status 200.
    static func json(_ body: String, status: Int = 200) -> Self {
        Self(status: status, contentType: "application/json; charset=UTF-8", body: body)
    }

    /// Plain text, by default with status 200.
    static func text(_ body: String, status: Int = 200) -> Self {
        Self(status: status, contentType: "text/plain; charset=UTF-8", body: body)
    }

    static func page(_ title: String, status: Int, headers: [HeaderField] = []) -> Self {
        let body = "<!DOCTYPE html>\n<html><head><title>\(title)</title></head><body><h1>\(title)</h1></body></html>\n"
        return Self(status: status, contentType: "text/html; charset=UTF-8", body: body, headers: headers)
    }

    static let noContent = Self(status: 204, contentType: nil, body: "")
    static let unauthorized = Self.page("Unauthorized", status: 401)
    static let notFound = Self.page("Not Found", status: 404)

    static func methodNotAllowed(allow: String) -> Self {
        .page("Method Not Allowed", status: 405, headers: [HeaderField(name: "Allow", value: allow)])
    }

    static let garbage = Self.json("<<<< }{ this is not JSON \u{1}")
}

extension Response {
    private struct Truncation: Error {}

    init(_ answer: Answer) {
        self.init(
            status: .init(code: answer.status),
            headers: HTTPFields(answer),
            body: answer.body.isEmpty ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(string: answer.body))
        )
    }

    static func truncated(_ answer: Answer) -> Response {
        let half = ByteBuffer(bytes: answer.body.utf8.prefix(answer.body.utf8.count / 2))
        let body = ResponseBody(contentLength: answer.body.utf8.count) { writer in
            try await writer.write(half)
            // Hummingbird closes the connection if a body can't be written completely.
            throw Truncation()
        }
        return Response(status: .init(code: answer.status), headers: HTTPFields(answer), body: body)
    }
}

extension HTTPFields {
    fileprivate init(_ answer: Answer) {
        self.init()
        for field in answer.headers {
            guard let name = HTTPField.Name(field.name) else { continue }
            self.append(HTTPField(name: name, value: field.value))
        }
    }
}
