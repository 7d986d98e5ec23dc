import HTTPTypes
import NIOCore

/// Writes the head of an HTTP/1.1 request, with the fields that frame it.
struct HTTPRequestHeadWriter {
    private let request: HTTPClientRequest
    private let authority: String

    init(request: HTTPClientRequest, authority: String) {
        self.request = request
        self.authority = authority
    }

    /// Room enough for the head, in bytes, unless the path has to be encoded.
    var headBytes: Int {
        96 + self.request.path.utf8.count + self.authority.utf8.count + self.request.headers.bytes.count
    }

    func writeHead(to bytes: inout ByteBuffer) {
        bytes.writeString(self.request.method.rawValue)
        bytes.writeStaticString(" ")
        HTTPRequestPath(self.request.path).write(to: &bytes)
        bytes.writeStaticString(" HTTP/1.1\r\nHost: ")
        bytes.writeString(self.authority)
        bytes.writeStaticString("\r\n")
        bytes.writeBytes(self.request.headers.bytes)
        if self.request.statesLength {
            bytes.writeStaticString("Content-Length: ")
            bytes.writeString(String(self.request.body.readableBytes))
            bytes.writeStaticString("\r\n")
        }
        bytes.writeStaticString("\r\n")
    }
}
