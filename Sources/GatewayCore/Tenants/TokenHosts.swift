/// The servers that secrets may be sent to without encryption: this machine, and hosts that an operator names.
package struct PlainHTTP: Sendable, Hashable {
    /// The rule's exception, in words for an operator.
    package static let exception =
        "http is for this machine itself and for the hosts in upstream.allowPlainHTTP alone"

    private let hosts: Set<String>

    /// Takes names or addresses without a port, IPv6 addresses in brackets.
    package init(hosts: some Sequence<String> = EmptyCollection<String>()) {
        self.hosts = Set(hosts.map { $0.lowercased() })
    }

    package func admits(_ uri: TokenURI) -> Bool {
        uri.isEncrypted || uri.isLoopback || self.hosts.contains(uri.host)
    }

    /// True if secrets may be sent to a server, `http(s)://host[:port]`. Also true for a text of another form.
    package func admits(endpoint: String) -> Bool {
        TokenURI(endpoint).map(self.admits) ?? !endpoint.hasPrefix("http://")
    }
}

/// The hosts that the gateway may request access tokens from.
///
/// The address is part of an uploaded file. Without this list, such a file could make the gateway sign assertions for any
/// server (V-AUD of the protocol page).
package struct TokenHosts: Sendable, Hashable {
    package static let google = TokenHosts([
        "oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com", "sts.googleapis.com",
        "iamcredentials.googleapis.com",
    ])

    /// The servers that may be called without encryption.
    package let plainHTTP: PlainHTTP
    private let authorities: Set<String>
    private let admitsLoopback: Bool
    /// The hosts that external accounts may read subject tokens from.
    private let subjectAuthorities: Set<String>
    /// The folder of the files of subject tokens; `nil` for none.
    package let subjectTokenDirectory: String?
    /// The metadata server, a host with its port unless it is 80; `nil` for none. It is called without encryption.
    package let metadataServer: String?

    /// Takes the hosts, each with its port unless it is the scheme's default. For experiments, any port of this machine can be
    /// admitted as well.
    package init(
        _ authorities: some Sequence<String>,
        admitsLoopback: Bool = false,
        plainHTTP: PlainHTTP = PlainHTTP(),
        subjectAuthorities: some Sequence<String> = EmptyCollection<String>(),
        subjectTokenDirectory: String? = nil,
        metadataServer: String? = nil
    ) {
        self.plainHTTP = plainHTTP
        self.authorities = Set(authorities.map { $0.lowercased() })
        self.admitsLoopback = admitsLoopback
        self.subjectAuthorities = Set(subjectAuthorities.map { $0.lowercased() })
        (self.subjectTokenDirectory, self.metadataServer) = (subjectTokenDirectory, metadataServer)
    }

    /// The reason why no access token may be requested from an address.
    package enum Rejection: Sendable, Hashable {
        /// The address is not encrypted, and its host is not one of ``PlainHTTP``.
        case unencrypted
        case unlisted
    }

    package func admits(_ uri: TokenURI) -> Bool { self.rejection(of: uri) == nil }

    package func admitsSubjectTokens(of uri: TokenURI) -> Bool { self.subjectAuthorities.contains(uri.authority) }

    /// Returns `nil` if tokens may be requested from the address.
    package func rejection(of uri: TokenURI) -> Rejection? {
        if uri.isLoopback, self.admitsLoopback { return nil }
        // Reported first, because no list helps.
        guard self.plainHTTP.admits(uri) else { return .unencrypted }
        return self.authorities.contains(uri.authority) ? nil : .unlisted
    }
}

/// The address of a token endpoint: an `http` or `https` URL without user, query or fragment.
package struct TokenURI: Sendable, Hashable {
    /// The URL as in the service account, which is also the audience of assertions.
    package let text: String
    package let isEncrypted: Bool
    /// Host and port in lower case, without the scheme's default port.
    package let authority: String

    /// Parses a URL. A loose one may have a query, and `@` and escapes in its path.
    package init?(_ text: String, isLoose: Bool = false) {
        self.isEncrypted = text.hasPrefix("https://")
        guard self.isEncrypted || text.hasPrefix("http://"), text.utf8.count <= 2_048,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        let rest = text.dropFirst(self.isEncrypted ? 8 : 7)
        let authority = rest.prefix { $0 != "/" && $0 != "?" }.lowercased()
        let path = rest.utf8.dropFirst(authority.utf8.count)
        guard authority.utf8.allSatisfy(Self.isAllowed),
            path.allSatisfy({ Self.isAllowed($0) || isLoose && "@?%".utf8.contains($0) })
        else { return nil }
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

    /// The host in lower case, an IPv6 address in brackets.
    package var host: String { Self.split(self.authority).host }

    package var origin: String { "\(self.isEncrypted ? "https" : "http")://\(self.authority)" }

    package var path: String {
        let path = self.text.dropFirst(self.isEncrypted ? 8 : 7).drop { $0 != "/" && $0 != "?" }
        return path.hasPrefix("/") ? String(path) : "/" + path
    }

    /// True if the host is this machine, by address or by its usual name.
    package var isLoopback: Bool { ["127.0.0.1", "[::1]", "localhost"].contains(self.host) }

    /// Splits a host, which may be an IPv6 address in brackets, from the text after its colon.
    private static func split(_ authority: String) -> (host: String, port: Substring?) {
        let hostEnd: String.Index
        if authority.hasPrefix("["), let bracket = authority.firstIndex(of: "]") {
            hostEnd = authority.index(after: bracket)
        } else {
            hostEnd = authority.firstIndex(of: ":") ?? authority.endIndex
        }
        let rest = authority[hostEnd...]
        guard !rest.isEmpty else { return (String(authority[..<hostEnd]), nil) }
        // Anything but a port makes the URL invalid: an empty port is never a number.
        return (String(authority[..<hostEnd]), rest.hasPrefix(":") ? rest.dropFirst() : "")
    }

    /// True for visible ASCII, except characters that begin a user, a query, a fragment or an escape.
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
