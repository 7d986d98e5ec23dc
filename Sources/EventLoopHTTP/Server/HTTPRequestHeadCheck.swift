import HTTPTypes
import NIOHTTP1

/// Decides whether a parsed head has exactly one meaning, and translates it.
///
/// The parser already refuses most malformed heads (RFC 9112); here stands what it lets pass.
struct HTTPRequestHeadCheck: Sendable {
    enum Verdict {
        case accepted(HTTPAcceptedHead)
        case refused(HTTPServerRefusal)
    }

    /// The request target, in bytes.
    let maxURIBytes: Int
    /// The scheme requests are given: `https` on an encrypted connection.
    let scheme: String

    func check(_ head: HTTPRequestHead) -> Verdict {
        guard head.version == .http1_1 || head.version == .http1_0 else { return .refused(.httpVersionNotSupported) }
        let isHTTP10 = head.version == .http1_0
        guard head.uri.utf8.count <= self.maxURIBytes else { return .refused(.uriTooLong) }
        guard let method = HTTPRequest.Method(head.method.rawValue), method != .connect else {
            return .refused(.badRequest(reason: "The method is not supported."))
        }

        var framing = HTTPRequestFraming()
        var fields = HTTPFields()
        fields.reserveCapacity(head.headers.count)
        for (name, value) in head.headers {
            guard let name = HTTPField.Name(name) else {
                return .refused(.badRequest(reason: "A header field's name is malformed."))
            }
            if let refusal = framing.note(name, value) {
                return .refused(refusal)
            }
            if name.canonicalName != "host" {
                fields.append(HTTPField(name: name, value: value))
            }
        }

        if let host = framing.host {
            guard HTTPAuthority.isValid(host) else {
                return .refused(.badRequest(reason: "The Host field is malformed."))
            }
        } else if !isHTTP10 {
            return .refused(.badRequest(reason: "The Host field is missing."))
        }
        guard let path = Self.path(of: head.uri, method: method, host: framing.host) else {
            return .refused(.badRequest(reason: "The request target is malformed or contradicts the Host field."))
        }
        let bodyFraming: HTTPBodyFraming
        switch framing.body(isHTTP10: isHTTP10) {
        case .accepted(let value): bodyFraming = value
        case .refused(let refusal): return .refused(refusal)
        }
        // HTTP/1.0 has no expectations; they are ignored there (RFC 9110, section 10.1.1).
        if !isHTTP10, let expect = framing.expect, !expect.equalsIgnoringCase("100-continue") {
            return .refused(.expectationFailed)
        }
        return .accepted(
            HTTPAcceptedHead(
                request: HTTPRequest(
                    method: method,
                    scheme: self.scheme,
                    authority: framing.host,
                    path: path,
                    headerFields: fields
                ),
                framing: bodyFraming,
                isHTTP10: isHTTP10,
                // The parser stops behind a request that offers an upgrade, so the connection ends with the answer.
                keepsAlive: head.isKeepAlive && !framing.hasUpgrade,
                expectsContinue: !isHTTP10 && framing.expect != nil
            )
        )
    }

    /// The path and query of a target, nil for a target that has none or names another authority than `Host`.
    private static func path(of target: String, method: HTTPRequest.Method, host: String?) -> String? {
        guard target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else { return nil }
        if target.utf8.first == UInt8(ascii: "/") {
            return target
        }
        if target == "*" {
            return method == .options ? target : nil
        }
        // Absolute form (RFC 9112, section 3.2.2).
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
}
