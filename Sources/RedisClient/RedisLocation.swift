/// The address of a Redis or Valkey server, or of the Sentinels that know it, from a URL.
///
/// - `redis://user@host:port/database`, and `rediss://` with TLS
/// - `redis+sentinel://user@host:port,host:port/service/database`, and `rediss+sentinel://` with TLS to all of them
///
/// The user, the database and a default port may be left out.
package struct RedisLocation: Sendable, Hashable {
    /// A server's name or address, and its port.
    package struct Endpoint: Sendable, Hashable, CustomStringConvertible {
        package var host: String
        package var port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        package var description: String {
            self.host.utf8.contains(UInt8(ascii: ":")) ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)"
        }
    }

    /// A fault of a URL, in words for an operator. It never repeats the URL, which may contain a password.
    package struct Fault: Error, Sendable, Hashable {
        package let message: String
    }

    private static let serverPort = 6_379
    private static let sentinelPort = 26_379
    private static let maxDatabase = 16_383

    package var usesTLS: Bool
    package var user: String?
    /// The server, or the Sentinels in the order of asking.
    package var endpoints: [Endpoint]
    /// The Sentinels' name for the server; nil without Sentinels.
    package var service: String?
    package var database: Int

    package init(_ url: String) throws(Fault) {
        guard let separator = url.firstRange(of: "://") else {
            throw Fault(message: "must begin with redis://, rediss:// or redis+sentinel://")
        }
        let scheme = url[..<separator.lowerBound]
        guard ["redis", "rediss", "redis+sentinel", "rediss+sentinel"].contains(scheme) else {
            throw Fault(message: "must begin with redis://, rediss:// or redis+sentinel://")
        }
        self.usesTLS = scheme.hasPrefix("rediss")
        let isSentinel = scheme.hasSuffix("+sentinel")
        var rest = url[separator.upperBound...]
        guard rest.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Fault(message: "must be visible ASCII characters without spaces")
        }
        guard !rest.contains("?"), !rest.contains("#") else {
            throw Fault(message: "must have no query and no fragment")
        }
        self.user = nil
        if let at = rest.lastIndex(of: "@") {
            let user = rest[..<at]
            guard !user.contains(":") else {
                throw Fault(message: "must hold no password; set limits.redisPassword")
            }
            guard !user.isEmpty, !user.contains("/"), !user.contains("%") else {
                throw Fault(message: "names no user before the @")
            }
            self.user = String(user)
            rest = rest[rest.index(after: at)...]
        }
        let parts = rest.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let hosts = (parts.first ?? "").split(separator: ",", omittingEmptySubsequences: false)
        guard isSentinel || hosts.count == 1 else {
            throw Fault(message: "must name one server; use redis+sentinel:// to name several Sentinels")
        }
        var endpoints: [Endpoint] = []
        for host in hosts {
            guard let endpoint = Self.endpoint(host, port: isSentinel ? Self.sentinelPort : Self.serverPort) else {
                throw Fault(message: "must name a host, and a port from 1 to 65535 behind a colon")
            }
            endpoints.append(endpoint)
        }
        self.endpoints = endpoints
        var path = ArraySlice(parts.dropFirst())
        self.service = nil
        if isSentinel {
            guard let service = path.popFirst(), !service.isEmpty else {
                throw Fault(message: "must name the service that the Sentinels watch, as in /mymaster")
            }
            self.service = String(service)
        }
        self.database = 0
        if let database = path.popFirst(), !database.isEmpty {
            guard database.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let number = Int(database), number <= Self.maxDatabase
            else {
                throw Fault(message: "must end with a database's number from 0 to \(Self.maxDatabase)")
            }
            self.database = number
        }
        guard path.isEmpty else { throw Fault(message: "must have nothing after the database") }
    }

    private static func endpoint(_ text: Substring, port: Int) -> Endpoint? {
        let host: Substring
        var rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            guard host.contains(":") else { return nil }
        } else {
            let end = text.firstIndex(of: ":") ?? text.endIndex
            host = text[..<end]
            rest = text[end...]
        }
        guard !host.isEmpty, !host.contains("["), !host.contains("]") else { return nil }
        guard !rest.isEmpty else { return Endpoint(host: String(host), port: port) }
        guard rest.removeFirst() == ":", rest.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let number = Int(rest), (1...65_535).contains(number)
        else { return nil }
        return Endpoint(host: String(host), port: number)
    }
}
