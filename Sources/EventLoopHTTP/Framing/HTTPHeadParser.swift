package import HTTPTypes
import NIOCore

/// The head of a request that passed the server's checks.
package final class HTTPRequestHead: Sendable {
    package let method: HTTPRequest.Method
    /// The bytes of path and query. They start with `/`, or are `*`.
    package let pathBytes: [UInt8]
    /// The field lines, including `Host`.
    package let fields: HTTPFieldLines
    /// `Host` as received. `nil` if it is missing, which HTTP/1.0 allows.
    package let authority: String?

    init(method: HTTPRequest.Method, authority: String?, path: [UInt8], fields: HTTPFieldLines) {
        self.method = method
        self.authority = authority
        self.pathBytes = path
        self.fields = fields
    }

    /// A head that was not received.
    package convenience init(_ request: HTTPRequest) {
        self.init(
            method: request.method,
            authority: request.authority,
            path: Array((request.path ?? "/").utf8),
            fields: HTTPFieldLines(request.headerFields)
        )
    }

    package var path: String { String(decoding: self.pathBytes, as: UTF8.self) }
}

/// Parses a complete head, including the empty line at its end, and ensures that it has exactly one meaning (RFC 9112).
///
/// It refuses everything that two parsers could read differently. Requests and answers share the rules for fields and
/// for the body's framing. The server's answer names the broken rule; the client closes the connection.
enum HTTPHeadParser {
    /// A final answer's head after all checks, and its message's properties.
    struct AcceptedResponse {
        var head: HTTPClientResponse.Head
        var framing: HTTPBodyFraming
        /// True if the connection may serve another request.
        var keepsAlive: Bool
    }

    /// A request's head after all checks, and its message's properties.
    struct AcceptedRequest {
        var head: HTTPRequestHead
        /// The end of the body, never `untilClose`.
        var framing: HTTPBodyFraming
        /// True if the client uses HTTP/1.0, and must be told that the connection stays open.
        var isHTTP10: Bool
        /// True if the connection may serve another request.
        var keepsAlive: Bool
        /// True if the client waits for 100 before it sends the body.
        var expectsContinue: Bool
    }

    private static let versionPrefix = Array("HTTP/".utf8)
    private static let chunked = Array("chunked".utf8)
    private static let hundredContinue = Array("100-continue".utf8)
    private static let close = Array("close".utf8)
    private static let keepAlive = Array("keep-alive".utf8)

    // MARK: Requests

    static func request(_ head: ByteBuffer, maxURIBytes: Int) throws(HTTPServerRefusal) -> AcceptedRequest {
        let line = try RequestLine(head.readableBytesUInt8Span, maxURIBytes: maxURIBytes)
        guard let fields = HTTPFieldLines.parse(head, from: line.end) else {
            throw .badRequest(reason: "A header field is malformed.")
        }
        let host = try Self.host(fields, head)
        guard host != nil || line.isHTTP10 else {
            throw .badRequest(reason: "The Host field is missing.")
        }
        let target = head.getBytes(at: head.readerIndex + line.target.lowerBound, length: line.target.count)
        guard let target, let path = Self.path(of: target, method: line.method, host: host) else {
            throw .badRequest(reason: "The request target is malformed or contradicts the Host field.")
        }
        let framing: HTTPBodyFraming =
            switch try Self.declaredFraming(fields, head, isHTTP10: line.isHTTP10) {
            case .chunked: .chunked
            case .none, .length(.bytes(0)): .none
            case .length(.bytes(let count)): .length(count)
            case .length: throw .bodyTooLarge
            case .unsupported: throw .unsupportedTransferEncoding
            }
        let expectsContinue = try Self.expectsContinue(fields, head)
        return AcceptedRequest(
            head: HTTPRequestHead(method: line.method, authority: host, path: path, fields: fields),
            framing: framing,
            isHTTP10: line.isHTTP10,
            keepsAlive: Self.keepsAlive(fields, isHTTP10: line.isHTTP10),
            // HTTP/1.0 has no expectations, so they are ignored (RFC 9110, section 10.1.1).
            expectsContinue: expectsContinue && !line.isHTTP10
        )
    }

    private struct RequestLine {
        let method: HTTPRequest.Method
        let target: Range<Int>
        let isHTTP10: Bool
        /// The start of the field lines.
        let end: Int

        init(_ bytes: Span<UInt8>, maxURIBytes: Int) throws(HTTPServerRefusal) {
            var index = 0
            // Empty lines before the first line are skipped (RFC 9112, section 2.2).
            while bytes.endsLine(at: index) { index += 2 }
            let methodStart = index
            while index < bytes.count, HTTPGrammar.isToken(bytes[index]) { index += 1 }
            guard index < bytes.count, bytes[index] == HTTPGrammar.space,
                let method = Self.method(bytes.extracting(methodStart..<index))
            else { throw .badRequest(reason: "The method is not supported.") }
            index += 1
            let targetStart = index
            while index < bytes.count, HTTPGrammar.isTarget(bytes[index]) { index += 1 }
            let target = targetStart..<index
            guard target.count <= maxURIBytes else { throw .uriTooLong }
            guard !target.isEmpty, index < bytes.count, bytes[index] == HTTPGrammar.space else {
                throw .badRequest(reason: "The request target is malformed.")
            }
            index += 1
            let version = index
            guard bytes.endsLine(at: version + HTTPHeadParser.versionPrefix.count + 3),
                bytes.extracting(version..<(version + HTTPHeadParser.versionPrefix.count))
                    .elementsEqual(HTTPHeadParser.versionPrefix),
                HTTPGrammar.isDigit(bytes[version + 5]), bytes[version + 6] == UInt8(ascii: "."),
                HTTPGrammar.isDigit(bytes[version + 7])
            else { throw .badRequest(reason: "The request line is malformed.") }
            let minor = bytes[version + 7]
            guard bytes[version + 5] == UInt8(ascii: "1"), minor <= UInt8(ascii: "1") else {
                throw .httpVersionNotSupported
            }
            self.method = method
            self.target = target
            self.isHTTP10 = minor == UInt8(ascii: "0")
            self.end = version + 10
        }

        /// The methods that the server accepts (RFC 9110, section 9.3; RFC 5789).
        ///
        /// `CONNECT` is not among them, because there is no target for a tunnel.
        private static let methods: [(name: [UInt8], method: HTTPRequest.Method)] = [
            HTTPRequest.Method.post, .get, .put, .delete, .patch, .head, .options, .trace,
        ]
        .map { (Array($0.rawValue.utf8), $0) }

        private static func method(_ name: Span<UInt8>) -> HTTPRequest.Method? {
            for entry in Self.methods where name.elementsEqual(entry.name) {
                return entry.method
            }
            return nil
        }
    }

    private static func host(_ fields: HTTPFieldLines, _ head: ByteBuffer) throws(HTTPServerRefusal) -> String? {
        switch fields.occurrence(of: .host) {
        case .never:
            return nil
        case .repeatedly:
            throw .badRequest(reason: "The Host field is repeated.")
        case .once(let value):
            guard HTTPAuthority.isValid(head.readableBytesUInt8Span.extracting(value)) else {
                throw .badRequest(reason: "The Host field is malformed.")
            }
            return head.getString(at: head.readerIndex + value.lowerBound, length: value.count)
        }
    }

    /// Returns the path and query of a target in one of the forms of RFC 9112, section 3.2. Returns `nil` for a target
    /// without path, with another authority than `Host`, or for `*` with another method than `OPTIONS`.
    private static func path(of target: [UInt8], method: HTTPRequest.Method, host: String?) -> [UInt8]? {
        if target.first == UInt8(ascii: "/") {
            return target
        }
        if target == [UInt8(ascii: "*")] {
            return method == .options ? target : nil
        }
        return self.path(ofAbsolute: String(decoding: target, as: UTF8.self), method: method, host: host)
            .map { Array($0.utf8) }
    }

    private static func path(ofAbsolute target: String, method: HTTPRequest.Method, host: String?) -> String? {
        guard let schemeEnd = target.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = target[..<schemeEnd]
        guard scheme.equalsIgnoringCase("http") || scheme.equalsIgnoringCase("https") else { return nil }
        let rest = target[target.index(after: schemeEnd)...]
        guard rest.hasPrefix("//") else { return nil }
        let authorityStart = rest.dropFirst(2)
        let authorityEnd =
            authorityStart.utf8.firstIndex(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") })
            ?? authorityStart.endIndex
        let authority = authorityStart[..<authorityEnd]
        guard let host, authority.equalsIgnoringCase(host) else { return nil }
        let path = authorityStart[authorityEnd...]
        guard let first = path.utf8.first else { return method == .options ? "*" : "/" }
        return first == UInt8(ascii: "?") ? "/" + path : String(path)
    }

    /// Returns true if the client waits for 100 before it sends the body.
    private static func expectsContinue(
        _ fields: HTTPFieldLines,
        _ head: ByteBuffer
    ) throws(HTTPServerRefusal) -> Bool {
        switch fields.occurrence(of: .expect) {
        case .never:
            return false
        case .once(let value) where head.readableBytesUInt8Span.equalsIgnoringCase(value, Self.hundredContinue):
            return true
        case .once, .repeatedly:
            throw .expectationFailed
        }
    }

    // MARK: Answers

    /// Parses the head of an answer. Returns `nil` for an interim answer. The request's method matters, since the
    /// answer to `HEAD` has no body.
    static func response(
        _ head: ByteBuffer,
        to method: HTTPRequest.Method,
        maxBodyBytes: Int
    ) throws(HTTPClientError.Code) -> AcceptedResponse? {
        guard let line = StatusLine(head.readableBytesUInt8Span),
            let fields = HTTPFieldLines.parse(head, from: line.end)
        else { throw .invalidResponse }
        switch line.code {
        case 101: throw .invalidResponse  // No request offers an upgrade.
        case 100...199: return nil
        case 200...599: break
        default: throw .invalidResponse
        }
        let declared: DeclaredFraming
        do throws(HTTPServerRefusal) {
            // Checked also if no body follows: an ambiguous length casts doubt on later answers.
            declared = try Self.declaredFraming(fields, head, isHTTP10: line.isHTTP10)
        } catch {
            throw .invalidResponse
        }
        let isBodiless = method == .head || line.code == 204 || line.code == 304
        let framing: HTTPBodyFraming
        switch declared {
        case _ where isBodiless: framing = .none
        case .none: framing = .untilClose
        case .chunked: framing = .chunked
        case .length(.bytes(0)): framing = .none
        case .length(.bytes(let count)) where count <= maxBodyBytes: framing = .length(count)
        case .length: throw .responseTooLarge
        case .unsupported: throw .invalidResponse
        }
        let keepsAlive = !line.isHTTP10 && !fields.lists(Self.close, in: .connection)
        return AcceptedResponse(
            head: HTTPClientResponse.Head(status: HTTPResponse.Status(code: line.code), fields: fields),
            framing: framing,
            keepsAlive: keepsAlive && framing != .untilClose
        )
    }

    /// `HTTP/1.1 200 OK`. The reason, and the space before it, may be missing.
    private struct StatusLine {
        let code: Int
        let isHTTP10: Bool
        /// The start of the field lines.
        let end: Int

        init?(_ bytes: Span<UInt8>) {
            let codeStart = HTTPHeadParser.versionPrefix.count + 4
            guard bytes.count > codeStart + 3,
                bytes.extracting(0..<HTTPHeadParser.versionPrefix.count).elementsEqual(HTTPHeadParser.versionPrefix),
                bytes[codeStart - 4] == UInt8(ascii: "1"), bytes[codeStart - 3] == UInt8(ascii: "."),
                bytes[codeStart - 1] == HTTPGrammar.space
            else { return nil }
            let minor = bytes[codeStart - 2]
            guard minor == UInt8(ascii: "0") || minor == UInt8(ascii: "1") else { return nil }
            var code = 0
            for index in codeStart..<(codeStart + 3) {
                guard HTTPGrammar.isDigit(bytes[index]) else { return nil }
                code = code * 10 + Int(bytes[index] - UInt8(ascii: "0"))
            }
            var index = codeStart + 3
            if bytes[index] == HTTPGrammar.space {
                while index < bytes.count, HTTPGrammar.isText(bytes[index]) { index += 1 }
            }
            guard bytes.endsLine(at: index) else { return nil }
            self.code = code
            self.isHTTP10 = minor == UInt8(ascii: "0")
            self.end = index + 2
        }
    }

    // MARK: Both

    private enum DeclaredFraming {
        case none
        case length(HTTPContentLength)
        case chunked
        /// A transfer coding other than `chunked`.
        case unsupported
    }

    /// The body's framing by `Content-Length` and `Transfer-Encoding` (RFC 9112, section 6.3). Ambiguous fields are
    /// refused.
    private static func declaredFraming(
        _ fields: HTTPFieldLines,
        _ head: ByteBuffer,
        isHTTP10: Bool
    ) throws(HTTPServerRefusal) -> DeclaredFraming {
        let length = fields.occurrence(of: .contentLength)
        switch fields.occurrence(of: .transferEncoding) {
        case .never:
            break
        case .repeatedly:
            throw .badRequest(reason: "The Transfer-Encoding field is repeated.")
        case .once(let value):
            guard !isHTTP10 else { throw .badRequest(reason: "HTTP/1.0 has no Transfer-Encoding.") }
            guard case .never = length else {
                throw .badRequest(reason: "Content-Length and Transfer-Encoding exclude each other.")
            }
            return head.readableBytesUInt8Span.equalsIgnoringCase(value, Self.chunked) ? .chunked : .unsupported
        }
        switch length {
        case .never:
            return .none
        case .repeatedly:
            throw .badRequest(reason: "The Content-Length field is repeated.")
        case .once(let value):
            let length = HTTPContentLength(head.readableBytesUInt8Span.extracting(value))
            guard length != .malformed else { throw .badRequest(reason: "The Content-Length field is malformed.") }
            return .length(length)
        }
    }

    private static func keepsAlive(_ fields: HTTPFieldLines, isHTTP10: Bool) -> Bool {
        // An offered upgrade is ignored (RFC 9110, section 7.8): the answer is not 101, so HTTP/1.1 continues.
        guard !fields.lists(Self.close, in: .connection) else { return false }
        return !isHTTP10 || fields.lists(Self.keepAlive, in: .connection)
    }
}
