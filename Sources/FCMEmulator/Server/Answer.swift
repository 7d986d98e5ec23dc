/// One HTTP answer.
struct Answer: Sendable, Equatable {
    let status: Int
    let headers: [HeaderField]
    let body: String

    /// An answer with a body of a media type; further fields may replace the media type.
    init(status: Int, contentType: String?, body: String, headers: [HeaderField] = []) {
        let hasOwnType = headers.contains { $0.name.lowercased() == "content-type" }
        let type = hasOwnType ? nil : contentType
        self.status = status
        self.headers = (type.map { [HeaderField(name: "Content-Type", value: $0)] } ?? []) + headers
        self.body = body
    }

    /// JSON, status 200 unless said otherwise.
    static func json(_ body: String, status: Int = 200) -> Self {
        Self(status: status, contentType: "application/json; charset=UTF-8", body: body)
    }

    /// Plain text, status 200 unless said otherwise.
    static func text(_ body: String, status: Int = 200) -> Self {
        Self(status: status, contentType: "text/plain; charset=UTF-8", body: body)
    }

    /// A page for people, as the service sends where a client did not reach the protocol at all.
    static func page(_ title: String, status: Int, headers: [HeaderField] = []) -> Self {
        let body = "<!DOCTYPE html>\n<html><head><title>\(title)</title></head><body><h1>\(title)</h1></body></html>\n"
        return Self(status: status, contentType: "text/html; charset=UTF-8", body: body, headers: headers)
    }

    /// Done, with nothing to tell.
    static let noContent = Self(status: 204, contentType: nil, body: "")

    /// The sender could not be authenticated.
    static let unauthorized = Self.page("Unauthorized", status: 401)

    /// Nothing is served at this path.
    static let notFound = Self.page("Not Found", status: 404)

    /// Another method is needed.
    static func methodNotAllowed(allow: String) -> Self {
        .page("Method Not Allowed", status: 405, headers: [HeaderField(name: "Allow", value: allow)])
    }

    /// Looks like an answer, but is no JSON.
    static let garbage = Self.json("<<<< }{ this is not JSON \u{1}")
}
