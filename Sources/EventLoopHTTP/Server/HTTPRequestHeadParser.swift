import HTTPTypes
import NIOCore

/// Reads a complete head, and decides whether it has exactly one meaning (RFC 9112).
///
/// Whatever two readers could take in two ways is refused.
struct HTTPRequestHeadParser: Sendable {
    enum Verdict {
        case accepted(HTTPAcceptedHead)
        case refused(HTTPServerRefusal)
    }

    private struct StartLine {
        var method: HTTPRequest.Method
        var target: Range<Int>
        var isHTTP10: Bool
        /// Where the field lines start.
        var end: Int
    }

    private enum StartLineVerdict {
        case accepted(StartLine)
        case refused(HTTPServerRefusal)
    }

    /// The request target, in bytes.
    let maxURIBytes: Int
    /// The scheme requests are given: `https` on an encrypted connection.
    let scheme: String

    /// Reads a head, which includes the empty line that ends it.
    func parse(_ head: ByteBuffer) -> Verdict {
        let startLine: StartLine
        switch self.startLine(head.readableBytesUInt8Span) {
        case .accepted(let value): startLine = value
        case .refused(let refusal): return .refused(refusal)
        }
        guard let fields = HTTPFieldLines(parsing: head, from: startLine.end) else {
            return .refused(.badRequest(reason: "A header field is malformed."))
        }
        let host: String?
        switch Self.host(fields, head) {
        case .accepted(let value): host = value
        case .refused(let refusal): return .refused(refusal)
        }
        guard host != nil || startLine.isHTTP10 else {
            return .refused(.badRequest(reason: "The Host field is missing."))
        }
        let target = head.getBytes(at: head.readerIndex + startLine.target.lowerBound, length: startLine.target.count)
        guard let target, let path = HTTPRequestTarget.path(of: target, method: startLine.method, host: host) else {
            return .refused(.badRequest(reason: "The request target is malformed or contradicts the Host field."))
        }
        let framing: HTTPBodyFraming
        switch Self.framing(fields, head, isHTTP10: startLine.isHTTP10) {
        case .accepted(let value): framing = value
        case .refused(let refusal): return .refused(refusal)
        }
        let expectsContinue: Bool
        switch Self.expectation(fields, head) {
        case .accepted(let value): expectsContinue = value
        case .refused(let refusal): return .refused(refusal)
        }
        return .accepted(
            HTTPAcceptedHead(
                head: HTTPRequestHead(
                    method: startLine.method,
                    scheme: self.scheme,
                    authority: host,
                    path: path,
                    fields: fields
                ),
                framing: framing,
                isHTTP10: startLine.isHTTP10,
                keepsAlive: Self.keepsAlive(fields, isHTTP10: startLine.isHTTP10),
                // HTTP/1.0 has no expectations; they are ignored there (RFC 9110, section 10.1.1).
                expectsContinue: expectsContinue && !startLine.isHTTP10
            )
        )
    }

    // MARK: Start line

    private func startLine(_ bytes: Span<UInt8>) -> StartLineVerdict {
        var index = 0
        // Empty lines before the first line are skipped (RFC 9112, section 2.2).
        while bytes.endsLine(at: index) { index += 2 }
        let methodStart = index
        while index < bytes.count, HTTPGrammar.isToken(bytes[index]) { index += 1 }
        guard index < bytes.count, bytes[index] == HTTPGrammar.space,
            let method = HTTPRequestMethod.method(bytes.extracting(methodStart..<index))
        else { return .refused(.badRequest(reason: "The method is not supported.")) }
        index += 1
        let targetStart = index
        while index < bytes.count, HTTPGrammar.isTarget(bytes[index]) { index += 1 }
        let target = targetStart..<index
        guard target.count <= self.maxURIBytes else { return .refused(.uriTooLong) }
        guard !target.isEmpty, index < bytes.count, bytes[index] == HTTPGrammar.space else {
            return .refused(.badRequest(reason: "The request target is malformed."))
        }
        index += 1
        let version = index
        guard bytes.endsLine(at: version + Self.versionPrefix.count + 3),
            bytes.extracting(version..<(version + Self.versionPrefix.count)).elementsEqual(Self.versionPrefix),
            HTTPGrammar.isDigit(bytes[version + 5]), bytes[version + 6] == UInt8(ascii: "."),
            HTTPGrammar.isDigit(bytes[version + 7])
        else { return .refused(.badRequest(reason: "The request line is malformed.")) }
        let minor = bytes[version + 7]
        guard bytes[version + 5] == UInt8(ascii: "1"), minor <= UInt8(ascii: "1") else {
            return .refused(.httpVersionNotSupported)
        }
        return .accepted(
            StartLine(method: method, target: target, isHTTP10: minor == UInt8(ascii: "0"), end: version + 10)
        )
    }

    private static let versionPrefix = Array("HTTP/".utf8)

    // MARK: Fields

    private enum FieldVerdict<Value> {
        case accepted(Value)
        case refused(HTTPServerRefusal)
    }

    private static func host(_ fields: HTTPFieldLines, _ head: ByteBuffer) -> FieldVerdict<String?> {
        switch fields.occurrence(of: .host) {
        case .never:
            return .accepted(nil)
        case .repeatedly:
            return .refused(.badRequest(reason: "The Host field is repeated."))
        case .once(let value):
            guard HTTPAuthority.isValid(head.readableBytesUInt8Span.extracting(value)) else {
                return .refused(.badRequest(reason: "The Host field is malformed."))
            }
            return .accepted(head.getString(at: head.readerIndex + value.lowerBound, length: value.count))
        }
    }

    /// How the body ends (RFC 9112, section 6.3).
    private static func framing(
        _ fields: HTTPFieldLines,
        _ head: ByteBuffer,
        isHTTP10: Bool
    ) -> FieldVerdict<HTTPBodyFraming> {
        let length = fields.occurrence(of: .contentLength)
        switch fields.occurrence(of: .transferEncoding) {
        case .never:
            break
        case .repeatedly:
            return .refused(.badRequest(reason: "The Transfer-Encoding field is repeated."))
        case .once(let value):
            guard !isHTTP10 else { return .refused(.badRequest(reason: "HTTP/1.0 has no Transfer-Encoding.")) }
            guard case .never = length else {
                return .refused(.badRequest(reason: "Content-Length and Transfer-Encoding exclude each other."))
            }
            guard head.readableBytesUInt8Span.equalsIgnoringCase(value, Self.chunked) else {
                return .refused(.unsupportedTransferEncoding)
            }
            return .accepted(.chunked)
        }
        switch length {
        case .never:
            return .accepted(.none)
        case .repeatedly:
            return .refused(.badRequest(reason: "The Content-Length field is repeated."))
        case .once(let value):
            switch HTTPContentLength(head.readableBytesUInt8Span.extracting(value)) {
            case .bytes(0): return .accepted(.none)
            case .bytes(let count): return .accepted(.length(count))
            case .beyondAnyLimit: return .refused(.bodyTooLarge)
            case .malformed: return .refused(.badRequest(reason: "The Content-Length field is malformed."))
            }
        }
    }

    /// Whether the client waits for 100 before it sends the body.
    private static func expectation(_ fields: HTTPFieldLines, _ head: ByteBuffer) -> FieldVerdict<Bool> {
        switch fields.occurrence(of: .expect) {
        case .never:
            return .accepted(false)
        case .repeatedly:
            return .refused(.expectationFailed)
        case .once(let value):
            guard head.readableBytesUInt8Span.equalsIgnoringCase(value, Self.hundredContinue) else {
                return .refused(.expectationFailed)
            }
            return .accepted(true)
        }
    }

    private static func keepsAlive(_ fields: HTTPFieldLines, isHTTP10: Bool) -> Bool {
        // An upgrade that is offered is ignored (RFC 9110, section 7.8): the answer is none of 101, so HTTP/1.1 goes on.
        guard !fields.lists(Self.close, in: .connection) else { return false }
        return !isHTTP10 || fields.lists(Self.keepAlive, in: .connection)
    }

    private static let chunked = Array("chunked".utf8)
    private static let hundredContinue = Array("100-continue".utf8)
    private static let close = Array("close".utf8)
    private static let keepAlive = Array("keep-alive".utf8)
}

extension Span<UInt8> {
    /// Whether these are exactly some bytes.
    func elementsEqual(_ other: [UInt8]) -> Bool {
        guard self.count == other.count else { return false }
        for index in self.indices where self[index] != other[index] {
            return false
        }
        return true
    }
}
