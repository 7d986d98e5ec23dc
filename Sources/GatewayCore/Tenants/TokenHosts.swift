/// Where secrets may go without encryption: to this machine itself, and to hosts that an operator names.
package struct PlainHTTP: Sendable, Hashable {
    /// What the rule leaves, in words for an operator.
    package static let exception =
        "http is for this machine itself and for the hosts in upstream.allowPlainHTTP alone"

    private let hosts: Set<String>

    /// Names or addresses without a port, IPv6 addresses in brackets.
    package init(hosts: some Sequence<String> = EmptyCollection<String>()) {
        self.hosts = Set(hosts.map { $0.lowercased() })
    }

    package func admits(_ uri: TokenURI) -> Bool {
        uri.isEncrypted || uri.isLoopback || self.hosts.contains(uri.host)
    }

    /// Whether secrets may be sent to a server: `http(s)://host[:port]`; of other text nothing is said.
    package func admits(endpoint: String) -> Bool {
        TokenURI(endpoint).map(self.admits) ?? !endpoint.hasPrefix("http://")
    }
}

/// The hosts that access tokens may be asked of.
///
/// The address comes from an uploaded file: without this list, such a file could make the gateway sign assertions for a
/// stranger (V-AUD of the protocol page).
package struct TokenHosts: Sendable, Hashable {
    package static let google = TokenHosts(["oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"])

    /// Which of them may be asked without encryption, and which servers may be called so.
    package let plainHTTP: PlainHTTP
    private let authorities: Set<String>
    private let admitsLoopback: Bool

    /// The hosts, each with its port where that is not the scheme's own; for trying things out, this machine itself may
    /// be asked too, on any port.
    package init(
        _ authorities: some Sequence<String>,
        admitsLoopback: Bool = false,
        plainHTTP: PlainHTTP = PlainHTTP()
    ) {
        self.plainHTTP = plainHTTP
        self.authorities = Set(authorities.map { $0.lowercased() })
        self.admitsLoopback = admitsLoopback
    }

    /// Why access tokens may not be asked for at an address.
    package enum Rejection: Sendable, Hashable {
        /// The way there is not encrypted, and leads to a host for which that is not allowed.
        case unencrypted
        case unlisted
    }

    /// A listed host, and without encryption only where that is allowed.
    package func admits(_ uri: TokenURI) -> Bool { self.rejection(of: uri) == nil }

    /// `nil` where nothing keeps tokens from being asked for there.
    package func rejection(of uri: TokenURI) -> Rejection? {
        if uri.isLoopback, self.admitsLoopback { return nil }
        // Said first, since no list helps.
        guard self.plainHTTP.admits(uri) else { return .unencrypted }
        return self.authorities.contains(uri.authority) ? nil : .unlisted
    }
}

/// Where access tokens are asked for: an `http` or `https` URL without user, query or fragment.
package struct TokenURI: Sendable, Hashable {
    /// The URL as the service account has it; also the audience of assertions.
    package let text: String
    package let isEncrypted: Bool
    /// Host and port in lower case; the port is left out where it is the scheme's own.
    package let authority: String

    package init?(_ text: String) {
        guard text.utf8.count <= 2_048, text.utf8.allSatisfy(Self.isAllowed) else { return nil }
        self.isEncrypted = text.hasPrefix("https://")
        guard self.isEncrypted || text.hasPrefix("http://") else { return nil }
        let authority = text.dropFirst(self.isEncrypted ? 8 : 7).prefix { $0 != "/" }.lowercased()
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

    package var origin: String { "\(self.isEncrypted ? "https" : "http")://\(self.authority)" }

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
