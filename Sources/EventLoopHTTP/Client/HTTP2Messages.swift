import HTTPTypes
import NIOCore
import NIOHPACK

/// Encodes the heads of requests as field blocks.
///
/// Consecutive requests on a connection often differ only in their body, so the last block is reused. HPACK compresses
/// fields against earlier ones, so a repeated head takes a few bytes on the wire.
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

    mutating func block(for request: HTTPClientRequest) -> HPACKHeaders {
        var block = self.blockWithoutLength(for: request)
        if request.statesLength {
            // Lengths vary, and would displace more useful fields from the peer's table.
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
            (":path", request.encodedPath),
        ])
        request.headers.forEachLine { name, value in
            let name = String(decoding: name.lazy.map(HTTPGrammar.lowercased), as: UTF8.self)
            guard !Self.left(out: name) else { return }
            block.add(name: name, value: String(decoding: value, as: UTF8.self))
        }
        self.last = Last(method: request.method, path: request.path, lines: request.headers.bytes, block: block)
        return block
    }

    /// Fields of a single connection, or fields that a pseudo-header replaces (RFC 9113, section 8.2.2). Fields that
    /// frame a message never occur in a request's lines.
    private static func left(out name: String) -> Bool {
        name == "host" || name == "proxy-connection" || name == "http2-settings"
    }
}

/// Assembles one answer from the frames of its stream, within its limits.
///
/// Field blocks are checked only here (RFC 9113, sections 8.2 and 8.3). Names must be in lower case, and must not
/// concern a single connection. The only pseudo-header is `:status`, which must be first and single.
struct HTTP2ResponseReader {
    struct Limits: Sendable {
        /// The size of the field block in bytes, with 32 for each field (RFC 9113, section 6.5.2).
        var maxHeadBytes: Int
        var maxFields: Int
        var maxBodyBytes: Int
    }

    enum Step {
        case incomplete
        case complete(HTTPClientResponse)
        /// The head or the body exceeds its limit.
        case tooLarge
        case malformed
    }

    private let limits: Limits
    private var head: HTTPClientResponse?
    private var headBytes = 0
    private var body = ByteBuffer()
    private var informationalHeads = 0

    init(limits: Limits) {
        self.limits = limits
    }

    /// True if any part of an answer has arrived, including an interim one.
    var hasBegun: Bool {
        self.head != nil || self.informationalHeads > 0
    }

    var heldBytes: Int { self.headBytes + self.body.readableBytes }

    /// Reads a field block: an interim head, the final head, or trailers.
    mutating func read(_ block: HPACKHeaders, endsStream: Bool) -> Step {
        guard self.head == nil else {
            // Trailers are checked and discarded.
            let areFields = block.allSatisfy { name, value, _ in
                Self.mayStand(name) && HTTPGrammar.isAllToken(name.utf8.span) && HTTPGrammar.isAllText(value.utf8.span)
            }
            return endsStream && areFields ? self.complete() : .malformed
        }
        var status: Int?
        var fields = HTTPFieldLines(headBytes: 256)
        var bytes = 0
        for (name, value, _) in block {
            bytes += name.utf8.count + value.utf8.count + 32
            guard bytes <= self.limits.maxHeadBytes, fields.count < self.limits.maxFields else { return .tooLarge }
            if name.utf8.first == UInt8(ascii: ":") {
                guard name == ":status", status == nil, fields.count == 0, let code = Self.code(value) else {
                    return .malformed
                }
                status = code
            } else {
                guard Self.mayStand(name), fields.append(name: name, value: value) else { return .malformed }
            }
        }
        switch status {
        case .some(100...199) where status != 101 && !endsStream:
            self.informationalHeads += 1
            return self.informationalHeads <= HTTPClientCore.maxInformationalHeads ? .incomplete : .malformed
        case .some(let status) where (200...599).contains(status):
            self.head = HTTPClientResponse(status: HTTPResponse.Status(code: status), fields: fields)
            self.headBytes = bytes
            return endsStream ? self.complete() : self.checkedLength(fields)
        default:
            return .malformed
        }
    }

    /// True if an answer may have a field with this name. The caller has checked that it is a token.
    private static func mayStand(_ name: String) -> Bool {
        let bytes = name.utf8.span
        for index in bytes.indices where HTTPGrammar.lowercased(bytes[index]) != bytes[index] { return false }
        return switch name {
        case "", "connection", "transfer-encoding", "proxy-connection", "keep-alive", "upgrade": false
        default: true
        }
    }

    mutating func read(_ bytes: ByteBuffer, endsStream: Bool) -> Step {
        guard self.head != nil else { return .malformed }
        guard bytes.readableBytes <= self.limits.maxBodyBytes - self.body.readableBytes else { return .tooLarge }
        guard endsStream else {
            // A copy, so that a few bytes that wait for more don't retain the whole read buffer.
            if bytes.readableBytes > 0 { self.body.writeImmutableBuffer(bytes) }
            return .incomplete
        }
        if bytes.readableBytes > 0 { self.body.gather(bytes) }
        return self.complete()
    }

    private func complete() -> Step {
        guard var response = self.head else { return .malformed }
        response.body = self.body
        return .complete(response)
    }

    /// Refuses a body before it arrives, if its announced length exceeds the limit.
    private func checkedLength(_ fields: HTTPFieldLines) -> Step {
        guard let digits = fields.bytes(of: .contentLength) else { return .incomplete }
        switch HTTPContentLength(digits.span) {
        case .bytes(let count) where count <= self.limits.maxBodyBytes: return .incomplete
        case .bytes, .beyondAnyLimit: return .tooLarge
        case .malformed: return .malformed
        }
    }

    private static func code(_ text: String) -> Int? {
        guard text.utf8.count == 3, text.utf8.allSatisfy(HTTPGrammar.isDigit) else { return nil }
        return Int(text)
    }
}
