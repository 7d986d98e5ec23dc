import HTTPTypes
import NIOCore

/// Prepares the heads of requests for header compression.
///
/// Consecutive requests on a connection often differ only in their body, so the last head is reused.
struct HTTP2RequestHeadWriter {
    /// The fields of a request but `content-length`: their names and values one behind another.
    ///
    /// It is a class so that the last head is used again without a copy, and does not change once it is complete.
    final class Head {
        private let method: HTTPRequest.Method
        private let path: String
        private let lines: [UInt8]
        fileprivate(set) var bytes: [UInt8] = []
        /// The end of each name and each value in ``bytes``.
        fileprivate(set) var ends: [UInt32] = []

        fileprivate init(of request: HTTPClientRequest) {
            (self.method, self.path, self.lines) = (request.method, request.path, request.headers.bytes)
        }

        fileprivate func serves(_ request: HTTPClientRequest) -> Bool {
            self.path == request.path && self.lines == request.headers.bytes && self.method == request.method
        }

        fileprivate func append(_ name: some Collection<UInt8>, _ value: some Collection<UInt8>) {
            for part in [Array(name), Array(value)] {
                self.bytes += part
                self.ends.append(UInt32(self.bytes.count))
            }
        }
    }

    private let scheme: String
    private let authority: String
    private var last: Head?

    init(scheme: String, authority: String) {
        self.scheme = scheme
        self.authority = authority
    }

    mutating func head(of request: HTTPClientRequest) -> Head {
        if let last, last.serves(request) { return last }
        let head = Head(of: request)
        head.append(":method".utf8, request.method.rawValue.utf8)
        head.append(":scheme".utf8, self.scheme.utf8)
        head.append(":authority".utf8, self.authority.utf8)
        head.append(":path".utf8, request.encodedPath.utf8)
        request.headers.forEachLine { name, value in
            let name = name.map(HTTPGrammar.lowercased)
            if !Self.left(out: String(decoding: name, as: UTF8.self)) { head.append(name, value) }
        }
        self.last = head
        return head
    }

    /// Fields of a single connection, or fields that a pseudo-header replaces (RFC 9113, section 8.2.2). Fields that
    /// frame a message never occur in a request's lines.
    private static func left(out name: String) -> Bool {
        name == "host" || name == "proxy-connection" || name == "http2-settings"
    }
}

/// Assembles one answer from the frames of its stream, within its limits.
///
/// Fields are checked only here (RFC 9113, sections 8.2 and 8.3). Names must be in lower case, and must not
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
    private let method: HTTPRequest.Method
    private var block = Block()
    /// The final head, until the answer is complete.
    private var head: HTTPClientResponse.Head?
    private var statedLength: HTTPContentLength?
    private var headBytes = 0
    private var body = ByteBuffer()
    private var informationalHeads = 0

    /// The field block that is being read.
    private struct Block {
        var fields = HTTPFieldLines()
        var fieldCount = 0
        var bytes = 0
        var status: Int?
        var hasFailed = false
        var isTooLarge = false
    }

    init(limits: Limits, method: HTTPRequest.Method) {
        self.limits = limits
        self.method = method
    }

    /// True if any part of an answer has arrived, including an interim one.
    var hasBegun: Bool {
        self.headBytes > 0 || self.informationalHeads > 0
    }

    var heldBytes: Int { self.headBytes + self.body.readableBytes }

    /// Starts a field block: an interim head, the final head, or trailers.
    mutating func beginBlock() {
        self.block = Block()
        if self.head == nil { self.block.fields = HTTPFieldLines(headBytes: 256) }
    }

    mutating func readField(name: Span<UInt8>, value: Span<UInt8>) {
        guard !self.block.hasFailed else { return }
        self.block.bytes += name.count + value.count + 32
        self.block.fieldCount += 1
        guard self.block.bytes <= self.limits.maxHeadBytes else {
            self.block.isTooLarge = true
            self.block.hasFailed = true
            return
        }
        self.block.hasFailed = !self.accept(name: name, value: value)
    }

    /// Returns false for a field that may not stand here, or is one too many.
    private mutating func accept(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
        if self.head == nil, !name.isEmpty, name[0] == UInt8(ascii: ":") {
            guard name.elementsEqual(Self.status), self.block.fieldCount == 1, let code = Self.code(value) else {
                return false
            }
            self.block.status = code
            return true
        }
        guard Self.mayStand(name), HTTPGrammar.isAllToken(name), HTTPGrammar.isAllText(value) else { return false }
        // Trailers are checked and discarded.
        guard self.head == nil else { return true }
        guard self.block.fields.count < self.limits.maxFields, self.block.fields.append(name: name, value: value)
        else {
            self.block.isTooLarge = true
            return false
        }
        return true
    }

    mutating func endBlock(endsStream: Bool) -> Step {
        let block = exchange(&self.block, with: Block())
        guard !block.hasFailed else { return block.isTooLarge ? .tooLarge : .malformed }
        guard self.head == nil else { return endsStream ? self.end() : .malformed }
        switch block.status {
        case .some(100...199) where block.status != 101 && !endsStream:
            self.informationalHeads += 1
            return self.informationalHeads <= HTTPClientCore.maxInformationalHeads ? .incomplete : .malformed
        case .some(let status) where (200...599).contains(status):
            self.statedLength = block.fields.bytes(of: .contentLength).map { HTTPContentLength($0.span) }
            self.head = HTTPClientResponse.Head(status: HTTPResponse.Status(code: status), fields: block.fields)
            self.headBytes = block.bytes
            if endsStream { return self.end() }
            return switch self.statedLength {
            case nil: .incomplete
            case .bytes(let count)? where count <= self.limits.maxBodyBytes: .incomplete
            // Refused before it arrives.
            case .bytes?, .beyondAnyLimit?: .tooLarge
            case .malformed?: .malformed
            }
        default:
            return .malformed
        }
    }

    /// Reads a part of the body.
    mutating func read(_ bytes: Span<UInt8>) -> Step {
        guard self.head != nil else { return .malformed }
        guard bytes.count <= self.limits.maxBodyBytes - self.body.readableBytes else { return .tooLarge }
        self.body.writeBytes(bytes)
        return .incomplete
    }

    /// The stream has ended.
    mutating func end() -> Step {
        guard let head = self.head.take() else { return .malformed }
        if case .bytes(let count)? = self.statedLength, count != self.body.readableBytes {
            // The length of a body that does not follow (RFC 9110, section 8.6).
            let isBodiless = self.method == .head || head.status == .notModified
            guard isBodiless, self.body.readableBytes == 0 else { return .malformed }
        }
        return .complete(HTTPClientResponse(head, body: self.body))
    }

    private static let status = Array(":status".utf8)

    /// The fields of a single connection (RFC 9113, section 8.2.2).
    private static let connectionFields = [
        "connection", "transfer-encoding", "proxy-connection", "keep-alive", "upgrade",
    ]
    .map { Array($0.utf8) }

    /// True if an answer may have a field with this name. The caller checks that it is a token.
    private static func mayStand(_ name: Span<UInt8>) -> Bool {
        guard !name.isEmpty else { return false }
        for index in name.indices where HTTPGrammar.lowercased(name[index]) != name[index] { return false }
        for field in Self.connectionFields where name.elementsEqual(field) { return false }
        return true
    }

    private static func code(_ text: Span<UInt8>) -> Int? {
        guard text.count == 3 else { return nil }
        var code = 0
        for index in text.indices {
            guard HTTPGrammar.isDigit(text[index]) else { return nil }
            code = code * 10 + Int(text[index] - UInt8(ascii: "0"))
        }
        return code
    }
}
