/// The hosts that access tokens may be asked of.
///
/// The address comes from an uploaded file: without this list, such a file could make the gateway sign assertions for a
/// stranger (V-AUD of the protocol page).
package struct TokenHosts: Sendable, Hashable {
    /// Google's own.
    package static let google = TokenHosts(["oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"])

    private let authorities: Set<String>
    private let admitsLoopback: Bool

    /// A list of hosts.
    ///
    /// - Parameters:
    ///   - authorities: the hosts, each with its port where that is not the scheme's own.
    ///   - admitsLoopback: whether this machine itself may be asked too, on any port; for trying things out.
    package init(_ authorities: some Sequence<String>, admitsLoopback: Bool = false) {
        self.authorities = Set(authorities.map { $0.lowercased() })
        self.admitsLoopback = admitsLoopback
    }

    /// Whether tokens may be asked for at an address: a listed host, and without encryption only this machine itself.
    package func admits(_ uri: TokenURI) -> Bool { self.objection(to: uri) == nil }

    /// What keeps tokens from being asked for at an address; `nil` where nothing does.
    package func objection(to uri: TokenURI) -> TokenHostObjection? {
        if uri.isLoopback, self.admitsLoopback { return nil }
        // Said first, since no list helps.
        guard uri.isEncrypted || uri.isLoopback else { return .unencrypted }
        return self.authorities.contains(uri.authority) ? nil : .unlisted
    }
}
