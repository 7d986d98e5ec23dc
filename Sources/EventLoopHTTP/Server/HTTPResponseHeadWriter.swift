import HTTPTypes
import NIOCore

/// Writes the head of an answer, with the fields that frame it.
struct HTTPResponseHeadWriter {
    /// What the head says about the connection.
    enum Connection {
        case unmentioned
        case keepAlive
        case close
    }

    private let status: HTTPResponse.Status
    private let phrase: String
    private let headers: HTTPHeaderLines
    private let contentLength: Int?
    private let connection: Connection
    private let date: [UInt8]
    /// What follows the head.
    let body: ByteBuffer

    /// Prepares an answer.
    ///
    /// - Parameters:
    ///   - response: the answer; an informational status is replaced by 500, since no final answer would follow it.
    ///   - omitsBody: whether the request was `HEAD`.
    ///   - connection: what the head says about the connection.
    ///   - date: the line that says when, with its end.
    init(response: HTTPServerResponse, omitsBody: Bool, connection: Connection, date: [UInt8]) {
        self.date = date
        self.connection = connection
        self.headers = response.headers
        switch response.status.code {
        case 200...599:
            self.status = response.status
        default:
            self.status = .internalServerError
        }
        self.phrase = self.status == .ok ? "OK" : self.status.writtenPhrase
        // RFC 9110, section 8.6: 204 has no length, 304 would have that of another answer.
        if self.status == .noContent || self.status == .notModified {
            self.contentLength = nil
            self.body = ByteBuffer()
        } else {
            self.contentLength = response.body.readableBytes
            self.body = omitsBody ? ByteBuffer() : response.body
        }
    }

    /// Room enough for the head, in bytes.
    var headBytes: Int {
        96 + self.date.count + self.phrase.utf8.count + self.headers.bytes.count
    }

    func writeHead(to bytes: inout ByteBuffer) {
        if self.status == .ok {
            bytes.writeStaticString("HTTP/1.1 200 OK\r\n")
        } else {
            bytes.writeStaticString("HTTP/1.1 ")
            bytes.writeString(String(self.status.code))
            bytes.writeStaticString(" ")
            bytes.writeString(self.phrase)
            bytes.writeStaticString("\r\n")
        }
        bytes.writeBytes(self.date)
        bytes.writeBytes(self.headers.bytes)
        if let contentLength {
            bytes.writeStaticString("Content-Length: ")
            bytes.writeString(String(contentLength))
            bytes.writeStaticString("\r\n")
        }
        switch self.connection {
        case .unmentioned: bytes.writeStaticString("\r\n")
        case .keepAlive: bytes.writeStaticString("Connection: keep-alive\r\n\r\n")
        case .close: bytes.writeStaticString("Connection: close\r\n\r\n")
        }
    }
}
