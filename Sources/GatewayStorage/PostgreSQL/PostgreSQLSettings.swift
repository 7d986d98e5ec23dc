import CLibPQ
package import GatewayCore

/// The address of a PostgreSQL server, and the timeouts of its calls.
///
/// The address is libpq's own (https://www.postgresql.org/docs/current/libpq-connect.html). libpq handles several
/// hosts, TLS, service files and `PG…` variables.
package struct PostgreSQLSettings: Sendable {
    package var url: String
    /// Replaces a password that libpq finds by itself, such as in `PGPASSFILE`.
    package var password: Secret?
    /// Connections, each with its own thread.
    package var poolSize = 8
    /// For a statement, or a thousand of the same.
    var callTimeout = Duration.seconds(10)
    /// For a statement of a long read.
    var scanTimeout = Duration.seconds(60)
    /// For a connection of the pool while all are in use.
    var queueTimeout = Duration.seconds(10)
    /// The longest wait of a start for its server, and for the outcome of a COMMIT whose answer was lost.
    var outageTimeout = Duration.seconds(30)

    package init(url: String, password: Secret? = nil, poolSize: Int = 8) {
        (self.url, self.password, self.poolSize) = (url, password, poolSize)
    }

    /// True if a store's address names a PostgreSQL server.
    package static func isAddress(_ url: String) -> Bool {
        url.hasPrefix("postgres://") || url.hasPrefix("postgresql://")
    }

    /// Why libpq can't be loaded, or nil. The first use tries it.
    static let libraryProblem: String? = unsafe fcmgw_pq_load().map { unsafe String(cString: $0) }

    /// Returns why an address can't be used, without repeating it.
    package static func problem(_ url: String) -> String? {
        if let problem = self.libraryProblem { return "needs libpq, which can't be loaded: \(problem)" }
        guard !url.utf8.contains(0) else { return "is not an address that libpq understands" }
        switch (self.option("password", of: url), self.option("sslpassword", of: url)) {
        case (nil, _), (_, nil): return "is not an address that libpq understands"
        case (true?, _): return "must not hold a password; give it by GATEWAY_STORE_PASSWORD, or its …_FILE"
        case (_, true?): return "must not hold sslpassword; a service file of libpq may"
        case (false?, false?): return nil
        }
    }

    /// The default for `target_session_attrs`: `read-write` if several hosts are configured anywhere, since only the
    /// primary takes writes. A value that is configured has precedence, but only the address itself can say `any`.
    var sessionAttributes: String {
        guard Self.option("target_session_attrs", of: self.url) != true else { return "" }
        // libpq reads the text during the call.
        return unsafe fcmgw_pq_has_several_hosts(self.url) == 1 ? "read-write" : ""
    }

    /// The default for `require_auth`: with a configured password only SCRAM is accepted, so that an impostor does not
    /// receive the password in clear text. libpq supports this from release 16 on.
    var authentication: String { self.password == nil ? "" : "scram-sha-256" }

    /// The hosts of an address and their `sslmode`, or nil without libpq. A host may be empty or a path for sockets of
    /// this machine.
    package static func transport(of url: String) -> (hosts: [String], sslMode: String)? {
        guard self.libraryProblem == nil else { return nil }
        let addresses = self.effective("hostaddr", of: url)
        let hosts = addresses.isEmpty ? self.effective("host", of: url) : addresses
        return (
            hosts.split(separator: ",", omittingEmptySubsequences: false).map(String.init),
            self.effective("sslmode", of: url)
        )
    }

    private static func effective(_ keyword: String, of url: String) -> String {
        let size = 4_096
        // libpq reads the texts during the call, and fills the buffer to its end at most.
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { buffer in
            guard let start = buffer.baseAddress else { return "" }
            unsafe fcmgw_pq_effective(url, keyword, start, size)
            return unsafe String(cString: start)
        }
    }

    /// Returns true if an address sets an option, nil if libpq does not understand the address.
    private static func option(_ keyword: String, of url: String) -> Bool? {
        // libpq reads the texts during the call and keeps no pointer.
        let found = unsafe fcmgw_pq_has_option(url, keyword)
        return found < 0 ? nil : found == 1
    }
}
