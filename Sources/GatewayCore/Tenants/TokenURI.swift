/// Where access tokens are asked for: an `http` or `https` URL without user, query or fragment.
package struct TokenURI: Sendable, Hashable {
    /// The URL as the service account has it; also the audience of assertions.
    package let text: String
    /// Whether the way there is encrypted.
    package let isEncrypted: Bool
    /// Host and port in lower case; the port is left out where it is the scheme's own.
    package let authority: String

    /// Takes a URL apart; anything else is `nil`.
    package init?(_ text: String) {
        guard text.utf8.count <= 2_048, text.utf8.allSatisfy(Self.isAllowed) else { return nil }
        let scheme: String
        if text.hasPrefix("https://") {
            scheme = "https://"
        } else if text.hasPrefix("http://") {
            scheme = "http://"
        } else {
            return nil
        }
        self.isEncrypted = scheme == "https://"
        let rest = text.dropFirst(scheme.count)
        let authority = rest.prefix { $0 != "/" }.lowercased()
        let (host, port) = Self.split(authority)
        guard !host.isEmpty else { return nil }
        if let port {
            guard let number = Int(port), (1...65_535).contains(number), port.allSatisfy(\.isNumber) else { return nil }
            let isOwn = number == (self.isEncrypted ? 443 : 80)
            self.authority = isOwn ? host : "\(host):\(number)"
        } else {
            self.authority = host
        }
        self.text = text
    }

    /// The host in lower case; an IPv6 address in brackets.
    package var host: String { Self.split(self.authority).host }

    /// Scheme, host and port.
    package var origin: String { "\(self.isEncrypted ? "https" : "http")://\(self.authority)" }

    /// The path, a solidus at least.
    package var path: String {
        let path = self.text.dropFirst(self.isEncrypted ? 8 : 7).drop { $0 != "/" }
        return path.isEmpty ? "/" : String(path)
    }

    /// Whether the host is this machine itself, by address or by its usual name.
    package var isLoopback: Bool { ["127.0.0.1", "[::1]", "localhost"].contains(self.host) }

    /// A host, which may be an IPv6 address in brackets, and what follows its colon.
    private static func split(_ authority: String) -> (host: String, port: Substring?) {
        let hostEnd: String.Index
        if authority.hasPrefix("["), let bracket = authority.firstIndex(of: "]") {
            hostEnd = authority.index(after: bracket)
        } else {
            hostEnd = authority.firstIndex(of: ":") ?? authority.endIndex
        }
        let rest = authority[hostEnd...]
        guard !rest.isEmpty else { return (String(authority[..<hostEnd]), nil) }
        // What is no port makes the whole URL none: an empty port never is a number.
        return (String(authority[..<hostEnd]), rest.hasPrefix(":") ? rest.dropFirst() : "")
    }

    /// Visible ASCII without what could begin a user, a query, a fragment or an escape.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "@"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "\\"), UInt8(ascii: "%"),
            UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"):
            false
        default:
            (0x21...0x7E).contains(byte)
        }
    }
}
