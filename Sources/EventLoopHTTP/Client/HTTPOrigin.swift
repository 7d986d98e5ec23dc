/// The destination of requests: scheme, host and port.
package struct HTTPOrigin: Hashable, Sendable {
    /// `http` is plain text, `https` TLS.
    package enum Scheme: String, Sendable {
        case http
        case https

        package var defaultPort: Int {
            switch self {
            case .http: 80
            case .https: 443
            }
        }
    }

    package let scheme: Scheme
    /// A name, an IPv4 address, or an IPv6 address without brackets; in lower case.
    package let host: String
    /// 1 to 65535.
    package let port: Int

    /// The longest scheme, name and port with their separators.
    private static let maxBytes = "https://".utf8.count + 255 + ":65535/".utf8.count

    /// Parses `scheme://host[:port]`, with an optional final slash and nothing else.
    package init?(_ url: String) {
        // The time of a string comparison grows with the length, and is longer outside of ASCII.
        guard url.utf8.count <= Self.maxBytes else { return nil }
        var rest = url[...]
        if rest.hasPrefix("https://") {
            self.scheme = .https
        } else if rest.hasPrefix("http://") {
            self.scheme = .http
        } else {
            return nil
        }
        rest = rest.dropFirst(self.scheme.rawValue.utf8.count + 3)
        if rest.hasSuffix("/") {
            rest = rest.dropLast()
        }
        guard HTTPAuthority.isValid(Array(rest.utf8).span) else { return nil }
        let host: Substring
        if rest.hasPrefix("["), let end = rest.lastIndex(of: "]") {
            host = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
        } else {
            let end = rest.firstIndex(of: ":") ?? rest.endIndex
            host = rest[..<end]
            rest = rest[end...]
        }
        if rest.isEmpty {
            self.port = self.scheme.defaultPort
        } else {
            guard let port = Int(rest.dropFirst()), port > 0 else { return nil }
            self.port = port
        }
        self.host = host.lowercased()
    }

    /// The value of `Host` for this origin. The scheme's default port is left out.
    package var authority: String {
        let name = self.host.utf8.contains(UInt8(ascii: ":")) ? "[\(self.host)]" : self.host
        return self.port == self.scheme.defaultPort ? name : "\(name):\(self.port)"
    }
}
