import CLibPQ
package import GatewayCore

/// Where a PostgreSQL is, and how long it is waited for.
///
/// The address is libpq's own (https://www.postgresql.org/docs/current/libpq-connect.html): several hosts, TLS, service
/// files and `PG…` variables are its business.
package struct PostgreSQLSettings: Sendable {
    package var url: String
    /// In place of one that libpq finds by itself, such as in `PGPASSFILE`.
    package var password: Secret?
    /// Connections, each with a thread of its own.
    package var poolSize = 8
    /// For a statement, or a thousand of the same.
    var callTimeout = Duration.seconds(10)
    /// For a statement of a long read.
    var scanTimeout = Duration.seconds(60)
    /// For a connection of the pool, while others have all of them.
    var queueTimeout = Duration.seconds(10)
    /// How long a start waits for a server, and a lost COMMIT for its outcome.
    var outageTimeout = Duration.seconds(30)

    package init(url: String, password: Secret? = nil, poolSize: Int = 8) {
        (self.url, self.password, self.poolSize) = (url, password, poolSize)
    }

    /// Whether a store's address is meant to be a PostgreSQL's.
    package static func isAddress(_ url: String) -> Bool {
        url.hasPrefix("postgres://") || url.hasPrefix("postgresql://")
    }

    /// Why libpq can't be opened, which is tried at its first use; nil where it is there.
    static let libraryProblem: String? = unsafe fcmgw_pq_load().map { unsafe String(cString: $0) }

    /// Why an address can't be used; never repeats it.
    package static func problem(_ url: String) -> String? {
        if let problem = self.libraryProblem { return "needs libpq, which can't be loaded: \(problem)" }
        guard !url.utf8.contains(0) else { return "is no address that libpq understands" }
        switch (self.option("password", of: url), self.option("sslpassword", of: url)) {
        case (nil, _), (_, nil): return "is no address that libpq understands"
        case (true?, _): return "must not hold a password; give it by GATEWAY_STORE_PASSWORD, or its …_FILE"
        case (_, true?): return "must not hold sslpassword; a service file of libpq may"
        case (false?, false?): return nil
        }
    }

    /// With several hosts, wherever they are named, the one that takes writes is wanted, unless somebody said otherwise;
    /// that any will do, only the address can say.
    var sessionAttributes: String {
        guard Self.option("target_session_attrs", of: self.url) != true else { return "" }
        // libpq reads the text during the call.
        return unsafe fcmgw_pq_has_several_hosts(self.url) == 1 ? "read-write" : ""
    }

    /// How a server may ask for a password that is configured, so that an impostor does not get it in clear; libpq knows
    /// of this from release 16 on.
    var authentication: String { self.password == nil ? "" : "scram-sha-256" }

    /// The hosts that an address leads to, empty ones and paths for sockets of this machine, and the `sslmode` for them;
    /// nil without libpq.
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
        // libpq reads the texts during the call, and the buffer is filled up to its end at most.
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { buffer in
            guard let start = buffer.baseAddress else { return "" }
            unsafe fcmgw_pq_effective(url, keyword, start, size)
            return unsafe String(cString: start)
        }
    }

    /// Whether an address sets an option; nil for one that libpq does not understand.
    private static func option(_ keyword: String, of url: String) -> Bool? {
        // libpq reads the texts during the call, and keeps none of them.
        let found = unsafe fcmgw_pq_has_option(url, keyword)
        return found < 0 ? nil : found == 1
    }
}
