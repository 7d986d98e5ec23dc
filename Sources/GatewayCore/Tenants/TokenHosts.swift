/// Where secrets may go without encryption: to this machine itself, and to hosts that an operator names.
package struct PlainHTTP: Sendable, Hashable {
    /// What the rule leaves, in words for an operator.
    package static let exception =
        "http is for this machine itself and for the hosts in upstream.allowPlainHTTP alone"

    private let hosts: Set<String>

    /// A rule.
    ///
    /// - Parameter hosts: names or addresses without a port, IPv6 addresses in brackets.
    package init(hosts: some Sequence<String> = EmptyCollection<String>()) {
        self.hosts = Set(hosts.map { $0.lowercased() })
    }

    /// Whether the way to an address is encrypted, or need not be.
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
    /// Google's own.
    package static let google = TokenHosts(["oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"])

    /// Which of them may be asked without encryption, and which servers may be called so.
    package let plainHTTP: PlainHTTP
    private let authorities: Set<String>
    private let admitsLoopback: Bool

    /// A list of hosts.
    ///
    /// - Parameters:
    ///   - authorities: the hosts, each with its port where that is not the scheme's own.
    ///   - admitsLoopback: whether this machine itself may be asked too, on any port; for trying things out.
    ///   - plainHTTP: which of them may be asked without encryption.
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
        /// The operator's list of hosts does not have it.
        case unlisted
    }

    /// Whether tokens may be asked for at an address: a listed host, and without encryption only where that is allowed.
    package func admits(_ uri: TokenURI) -> Bool { self.rejection(of: uri) == nil }

    /// What keeps tokens from being asked for at an address; `nil` where nothing does.
    package func rejection(of uri: TokenURI) -> Rejection? {
        if uri.isLoopback, self.admitsLoopback { return nil }
        // Said first, since no list helps.
        guard self.plainHTTP.admits(uri) else { return .unencrypted }
        return self.authorities.contains(uri.authority) ? nil : .unlisted
    }
}
