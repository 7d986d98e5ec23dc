import HTTPTypes
import NIOCore
import NIOHPACK

/// Turns the heads of requests into field blocks.
///
/// The requests that follow each other on a connection often differ in their body only, so the last block is kept; and
/// since fields are compressed against those sent before, a repeated head is a few bytes on the wire.
struct HTTP2RequestHeadWriter {
    private struct Last {
        var method: HTTPRequest.Method
        var path: String
        var lines: [UInt8]
        var block: HPACKHeaders
    }

    private let scheme: String
    private let authority: String
    private var last: Last?

    init(scheme: String, authority: String) {
        self.scheme = scheme
        self.authority = authority
    }

    /// The field block of a request's head.
    mutating func block(for request: HTTPClientRequest) -> HPACKHeaders {
        var block = self.blockWithoutLength(for: request)
        if request.statesLength {
            // Lengths vary, and would push more useful fields out of the peer's table.
            block.add(name: "content-length", value: String(request.body.readableBytes), indexing: .nonIndexable)
        }
        return block
    }

    private mutating func blockWithoutLength(for request: HTTPClientRequest) -> HPACKHeaders {
        if let last, last.path == request.path, last.lines == request.headers.bytes, last.method == request.method {
            return last.block
        }
        var block = HPACKHeaders([
            (":method", request.method.rawValue),
            (":scheme", self.scheme),
            (":authority", self.authority),
            (":path", HTTPRequestPath(request.path).encoded),
        ])
        request.headers.forEachLine { name, value in
            let name = String(decoding: name.lazy.map(HTTPGrammar.lowercased), as: UTF8.self)
            guard !Self.left(out: name) else { return }
            block.add(name: name, value: String(decoding: value, as: UTF8.self))
        }
        self.last = Last(method: request.method, path: request.path, lines: request.headers.bytes, block: block)
        return block
    }

    /// Fields that belong to one connection, or that a pseudo-header replaces (RFC 9113, section 8.2.2); those that
    /// frame a message are never among a request's lines.
    private static func left(out name: String) -> Bool {
        name == "host" || name == "proxy-connection" || name == "http2-settings"
    }
}
