import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
    /// Ends a response before its body is complete.
    private struct Truncation: Error {}

    /// The answer as Hummingbird writes it.
    init(_ answer: Answer) {
        self.init(
            status: .init(code: answer.status),
            headers: HTTPFields(answer),
            body: answer.body.isEmpty ? ResponseBody() : ResponseBody(byteBuffer: ByteBuffer(string: answer.body))
        )
    }

    /// The answer with its true length announced, of which the first half is sent before the connection closes.
    static func truncated(_ answer: Answer) -> Response {
        let half = ByteBuffer(bytes: answer.body.utf8.prefix(answer.body.utf8.count / 2))
        let body = ResponseBody(contentLength: answer.body.utf8.count) { writer in
            try await writer.write(half)
            // Hummingbird closes the connection when a body cannot be written to its end.
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
