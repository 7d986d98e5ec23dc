import Foundation
package import ProcessTestKit

/// A Redis server of one test, on a port of its own, that is gone with the test.
package struct RedisServer: Sendable {
    /// What keeps a server from starting.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// A program that is a server, in one of its roles.
    package enum Kind: Sendable {
        case server
        /// Speaks TLS alone, with a certificate and its key in PEM.
        case encrypted(certificate: String, key: String)
        /// Watches the server at a port under the name `mymaster`.
        case sentinel(port: Int)
    }

    package let port: Int
    /// Its process, to be stopped, continued or killed.
    package let process: ChildProcess

    private static let attempts = 10

    /// Runs a body beside a server that takes commands; further arguments are settings of its configuration.
    package static func with<Result>(
        _ kind: Kind = .server,
        _ settings: [String] = [],
        _ body: (RedisServer) async throws -> Result
    ) async throws -> Result {
        guard let program = Program.named("redis-server") else {
            throw Failure(description: "redis-server is not installed (scripts/install-system-packages test)")
        }
        // Another process may take a port between its choice and the start.
        for _ in 1...Self.attempts {
            let port = Int.random(in: 20_000..<32_000)
            let outcome: Result? = try await PrivateDirectory.with(prefersMemory: true) { directory -> Result? in
                var arguments = [
                    "--port", "\(port)", "--bind", "127.0.0.1", "--dir", directory.path, "--daemonize", "no",
                    "--logfile", "", "--save", "", "--appendonly", "no",
                ]
                if case .encrypted(let certificate, let key) = kind {
                    let file = try directory.write(certificate, to: "certificate.pem")
                    let keyFile = try directory.write(key, to: "key.pem")
                    arguments += [
                        "--port", "0", "--tls-port", "\(port)", "--tls-cert-file", file, "--tls-ca-cert-file", file,
                        "--tls-key-file", keyFile, "--tls-auth-clients", "no",
                    ]
                }
                if case .sentinel(let watched) = kind {
                    let file = try directory.write(
                        """
                        port \(port)
                        bind 127.0.0.1
                        dir \(directory.path)
                        sentinel monitor mymaster 127.0.0.1 \(watched) 1
                        sentinel down-after-milliseconds mymaster 300
                        sentinel failover-timeout mymaster 2000

                        """,
                        to: "sentinel.conf"
                    )
                    arguments = [file, "--sentinel"]
                }
                return try await ChildProcess.with(program, arguments + settings) { process -> Result? in
                    guard try await Self.isReady(process) else { return nil }
                    return try await body(RedisServer(port: port, process: process))
                }
            }
            if let outcome { return outcome }
        }
        throw Failure(description: "redis-server finds no free port")
    }

    /// Waits until it says that it serves; false where its port is taken.
    private static func isReady(_ process: ChildProcess) async throws -> Bool {
        try await process.output.first { text -> Bool? in
            if text.contains("Ready to accept connections") || text.contains("+monitor master") { return true }
            return text.contains("Address already in use") || text.contains("Failed listening") ? false : nil
        }
    }
}
