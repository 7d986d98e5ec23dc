import HTTPTypes
import NIOCore

/// Writes the head of a request, with the fields that frame it.
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
        self.writePath(to: &bytes)
        bytes.writeStaticString(" HTTP/1.1\r\nHost: ")
        bytes.writeString(self.authority)
        bytes.writeStaticString("\r\n")
        bytes.writeBytes(self.request.headers.bytes)
        if self.request.body.readableBytes > 0 || self.mayHaveBody {
            bytes.writeStaticString("Content-Length: ")
            bytes.writeString(String(self.request.body.readableBytes))
            bytes.writeStaticString("\r\n")
        }
        bytes.writeStaticString("\r\n")
    }

    private var mayHaveBody: Bool {
        switch self.request.method {
        case .post, .put, .patch: true
        default: false
        }
    }

    private func writePath(to bytes: inout ByteBuffer) {
        let path = self.request.path
        if path.utf8.first != UInt8(ascii: "/") {
            bytes.writeStaticString("/")
        }
        guard path.utf8.contains(where: { !Self.mayStand($0) }) else {
            bytes.writeString(path)
            return
        }
        for byte in path.utf8 {
            if Self.mayStand(byte) {
                bytes.writeInteger(byte)
            } else {
                bytes.writeStaticString("%")
                bytes.writeInteger(Self.hexDigit(byte >> 4))
                bytes.writeInteger(Self.hexDigit(byte & 0x0F))
            }
        }
    }

    /// Whether a byte may stand in a request line; anything else would let a path end the line early.
    private static func mayStand(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "#")
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
