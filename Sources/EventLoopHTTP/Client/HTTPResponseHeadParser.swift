import HTTPTypes
import NIOCore

/// Reads the complete head of an answer, and decides what it means for the body and the connection (RFC 9112).
struct HTTPResponseHeadParser {
    enum Verdict {
        /// An interim answer; the final one follows.
        case informational
        /// The final answer, how its body ends, and whether the connection may serve again.
        case accepted(HTTPResponseHead, framing: HTTPBodyFraming, keepsAlive: Bool)
        case refused(HTTPClientError.Code)
    }

    private struct StatusLine {
        var code: Int
        var isHTTP10: Bool
        /// Where the field lines start.
        var end: Int
    }

    let maxBodyBytes: Int

    /// Reads the head of the answer to a request, which includes the empty line that ends it.
    ///
    /// The method matters since the answer to `HEAD` has no body.
    func parse(_ head: ByteBuffer, method: HTTPRequest.Method) -> Verdict {
        guard let statusLine = Self.statusLine(head.readableBytesUInt8Span),
            let fields = HTTPFieldLines(parsing: head, from: statusLine.end)
        else { return .refused(.invalidResponse) }
        switch statusLine.code {
        case 101:
            // Nobody asked to switch protocols.
            return .refused(.invalidResponse)
        case 100...199:
            return .informational
        case 200...599:
            break
        default:
            return .refused(.invalidResponse)
        }
        let response = HTTPResponseHead(status: statusLine.code, fields: fields)
        let keepsAlive = !statusLine.isHTTP10 && !fields.lists(Self.close, in: .connection)
        let length = fields.occurrence(of: .contentLength)
        let coding = fields.occurrence(of: .transferEncoding)
        if case .repeatedly = length { return .refused(.invalidResponse) }
        if case .repeatedly = coding { return .refused(.invalidResponse) }
        var declared: HTTPContentLength?
        if case .once(let value) = length {
            declared = HTTPContentLength(head.readableBytesUInt8Span.extracting(value))
            // Even where no body follows: what has two meanings, or none, says little good about the answers to come.
            if case .once = coding { return .refused(.invalidResponse) }
            if declared == .malformed { return .refused(.invalidResponse) }
        }

        if method == .head || statusLine.code == 204 || statusLine.code == 304 {
            return .accepted(response, framing: .none, keepsAlive: keepsAlive)
        }
        if case .once(let value) = coding {
            guard !statusLine.isHTTP10, head.readableBytesUInt8Span.equalsIgnoringCase(value, Self.chunked)
            else { return .refused(.invalidResponse) }
            return .accepted(response, framing: .chunked, keepsAlive: keepsAlive)
        }
        switch declared {
        case nil:
            return .accepted(response, framing: .untilClose, keepsAlive: false)
        case .malformed:
            return .refused(.invalidResponse)
        case .beyondAnyLimit:
            return .refused(.responseTooLarge)
        case .bytes(let count):
            guard count <= self.maxBodyBytes else { return .refused(.responseTooLarge) }
            return .accepted(response, framing: count == 0 ? .none : .length(count), keepsAlive: keepsAlive)
        }
    }

    /// `HTTP/1.1 200 OK`; the reason, and the space before it, may be missing.
    private static func statusLine(_ bytes: Span<UInt8>) -> StatusLine? {
        let codeStart = Self.versionPrefix.count + 2
        guard bytes.count > codeStart + 3,
            bytes.extracting(0..<Self.versionPrefix.count).elementsEqual(Self.versionPrefix),
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
        return StatusLine(code: code, isHTTP10: minor == UInt8(ascii: "0"), end: index + 2)
    }

    private static let versionPrefix = Array("HTTP/1.".utf8)
    private static let close = Array("close".utf8)
    private static let chunked = Array("chunked".utf8)
}
