import EventLoopHTTP
import Foundation
import GatewayService
import NIOCore
import NIOPosix

/// Looks whether the listeners' ports are free, or served by a gateway that is well.
struct ListenersCheck: Sendable {
    /// What is known of the listeners.
    struct Result: Sendable {
        /// What there is to say.
        var findings: [Finding] = []
        /// The admin listener of a gateway that runs; nil when none answers.
        var adminURL: BaseURL?
    }

    /// Names the admin listener's address, for all verbs that manage a gateway.
    private static let variable = "GATEWAY_ADMIN_URL"

    /// The settings.
    let configuration: GatewayConfiguration
    /// The process's variables, which may say where the admin listener is.
    let environment: [String: String]
    /// Whether a gateway serves the store.
    let isStoreServed: Bool

    /// Examines both listeners.
    func examine() async -> Result {
        var result = Result()
        let admin = self.configuration.admin
        let derived = BaseURL(
            BaseURL.address(ofListener: admin.server.host, port: admin.server.port, isEncrypted: !admin.tls.isPlain)
        )
        let variable = self.environment[Self.variable]
        let given = variable.flatMap { BaseURL($0) }
        if variable != nil, given == nil { result.findings.append(Self.malformed) }
        let wantsCertificate = admin.tls.clientCAFile != nil
        let running = wantsCertificate && given == nil ? nil : await RunningGatewayProbe.examine(given ?? derived)
        let http = self.configuration.http.server
        result.findings.append(await self.finding("http", http.host, http.port, running))
        result.findings.append(await self.finding("admin", admin.server.host, admin.server.port, running))
        if let url = given ?? derived, let running {
            // Over TLS by a name that was not given, nobody can say whose certificate it is.
            result.adminURL = given != nil || admin.tls.isPlain ? url : nil
            result.findings.append(running.finding(url))
        } else if wantsCertificate {
            result.findings.append(
                .ok(
                    .listeners,
                    (given ?? derived)?.text,
                    "admin.tls.clientCaFile asks for client certificates, and doctor has none: no gateway was asked"
                )
            )
        } else if self.isStoreServed {
            result.findings.append(
                .warning(
                    .listeners,
                    (given ?? derived)?.text,
                    "a gateway serves the store, but its admin listener does not answer here",
                    "Set GATEWAY_ADMIN_URL to its address, or see whether it hangs"
                )
            )
        }
        return result
    }

    /// Holds no part of the variable, which may hold a password.
    private static let malformed = Finding.problem(
        .listeners,
        Self.variable,
        "is not an address such as \(AdminOptions.defaultURL), so that verbs that manage a gateway refuse it",
        "Correct or remove it; what follows is of the admin listener as configured"
    )

    private func finding(_ name: String, _ host: String, _ port: Int, _ running: RunningGatewayProbe?) async -> Finding
    {
        let subject = "\(name) listener, \(host):\(port)"
        guard port != 0 else { return .ok(.listeners, subject, "takes any free port") }
        do {
            try await Self.bind(host, port)
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            if self.isStoreServed || running != nil {
                return .ok(.listeners, subject, "is in use, and a gateway runs")
            }
            return .problem(
                .listeners,
                subject,
                "another program uses the port",
                "Find it (ss -ltnp 'sport = :\(port)') and end it, or set \(name).port to another"
            )
        } catch let error as IOError where error.errnoCode == EACCES {
            return .warning(
                .listeners,
                subject,
                "user \(FileFacts.user) may not listen on this port",
                "Set \(name).port to one from 1024 on, and let the balancer in front have the other. A service with "
                    + "PrivateUsers=yes, as the shipped one, can't be given the right to it"
            )
        } catch {
            return .problem(
                .listeners,
                subject,
                "can't be listened on: \((error as? IOError).map { POSIXText.of($0.errnoCode) } ?? "\(error)")",
                "Set \(name).host to an address of this machine"
            )
        }
        if self.isStoreServed {
            return .warning(
                .listeners,
                subject,
                "is free, though a gateway serves the store",
                "Give doctor the configuration and the variables of that gateway"
            )
        }
        return .ok(.listeners, subject, "is free")
    }

    /// Listens for an instant.
    private static func bind(_ host: String, _ port: Int) async throws {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { $0.close() }
            .bind(host: host, port: port)
            .get()
        try await channel.close()
    }
}

/// What the system says of an error's number.
private enum POSIXText {
    static func of(_ number: Int32) -> String {
        // The text belongs to the system and is copied at once.
        unsafe String(cString: strerror(number))
    }
}
