import AsyncHTTPClient
import NIOCore
import NIOPosix
import NIOSSL

/// What stands between the gateway and a server of FCM's.
struct UpstreamObstacle: Sendable, Equatable {
    /// What was seen.
    let seen: String
    /// What to do.
    let advice: String

    private static let network = "See that this machine may reach it: firewall, network policy, routes"

    /// Makes sense of a failed call.
    init(_ error: any Error) {
        switch error {
        case let error as NIOConnectionError:
            self.init(error)
        case let error as HTTPClientError where error == .connectTimeout:
            self.init(seen: "no connection within the time allowed", advice: Self.network)
        case let error as HTTPClientError where error == .tlsHandshakeTimeout:
            self.init(seen: "connects, and says nothing of TLS in the time allowed", advice: Self.network)
        case let error as HTTPClientError where error == .deadlineExceeded:
            self.init(seen: "no answer within the time allowed", advice: Self.network)
        case let error as HTTPClientError:
            self.init(seen: "no answer: \(error.shortDescription)", advice: Self.network)
        case is NIOSSLExtraError:
            self.init(
                seen: "TLS: the certificate is not for this host's name",
                advice:
                    "Something else answers for it: see the endpoint's spelling, DNS, and proxies that intercept TLS"
            )
        case let error as NIOSSLError:
            self.init(tls: "\(error)")
        case let error as IOError:
            self.init(system: error.errnoCode)
        default:
            self.init(seen: "no answer: \(error)", advice: Self.network)
        }
    }

    private init(seen: String, advice: String) {
        self.seen = seen
        self.advice = advice
    }

    private init(_ error: NIOConnectionError) {
        if let first = error.connectionErrors.first {
            if let system = first.error as? IOError {
                self.init(system: system.errnoCode)
            } else {
                self.init(seen: "no connection: \(first.error)", advice: Self.network)
            }
        } else if error.dnsAError != nil || error.dnsAAAAError != nil {
            self.init(
                seen: "DNS: the name \(error.host) can't be resolved",
                advice: "See the endpoint's spelling and this machine's resolver: getent hosts \(error.host)"
            )
        } else {
            self.init(seen: "no connection", advice: Self.network)
        }
    }

    private init(system number: Int32) {
        guard number != ECONNREFUSED else {
            self.init(
                seen: "the connection was refused",
                advice: "Nothing listens there: see the endpoint's port, and whether its server runs"
            )
            return
        }
        self.init(seen: "no connection: errno \(number)", advice: Self.network)
    }

    private init(tls text: String) {
        if text.contains("CERTIFICATE_VERIFY_FAILED") {
            self.init(
                seen: "TLS: the certificate is not vouched for by an authority that is trusted",
                advice: "Install the system's authorities (ca-certificates), or name a private one in upstream.caFile"
            )
        } else if text.contains("WRONG_VERSION_NUMBER") || text.contains("HTTP_REQUEST") {
            self.init(seen: "TLS: the server does not speak it", advice: "See the endpoint's scheme and port")
        } else {
            self.init(seen: "TLS: the handshake failed: \(text)", advice: Self.network)
        }
    }
}
