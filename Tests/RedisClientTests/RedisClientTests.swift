import Foundation
import GatewayTestKit
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import NIOSSL
import ProcessTestKit
import RedisTestKit
import Testing

@testable import RedisClient

/// Each test starts its own Redis servers.
@Suite("RedisClient", .timeLimit(.minutes(4)))
struct RedisClientTests {
    /// Runs a body with a client on one event loop, with long timeouts.
    private static func with<Result>(
        _ url: String,
        configure: (inout RedisClient.Configuration) -> Void = { _ in },
        _ body: (RedisClient) async throws -> Result
    ) async throws -> Result {
        var configuration = RedisClient.Configuration(location: try RedisLocation(url), clientName: "test")
        configuration.callTimeout = .seconds(60)
        configuration.connectTimeout = .seconds(60)
        configure(&configuration)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let client = try RedisClient(
            configuration,
            eventLoopGroup: group,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        let result: Swift.Result<Result, any Error>
        do {
            result = .success(try await body(client))
        } catch {
            result = .failure(error)
        }
        await client.shutdown()
        try await group.shutdownGracefully()
        return try result.get()
    }

    private static func url(_ server: RedisServer) -> String { "redis://127.0.0.1:\(server.port)" }

    @Test("Concurrent commands share one named connection, and each gets its own reply")
    func pipelined() async throws {
        try await RedisServer.with { server in
            try await Self.with(Self.url(server)) { client in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<500 {
                        group.addTask {
                            let reply = try await client.call(RedisCommand(["ECHO", "\(number)"]))
                            #expect(reply.text == "\(number)")
                        }
                    }
                    try await group.waitForAll()
                }
                let clients = try await client.call(RedisCommand(["CLIENT", "LIST"])).text ?? ""
                #expect(clients.split(separator: "\n").count == 1)
                #expect(clients.contains("name=test "))
            }
        }
    }

    @Test("A server error is returned as a reply, and a large reply is complete")
    func replies() async throws {
        try await RedisServer.with { server in
            try await Self.with(Self.url(server)) { client async throws in
                #expect(try await client.call(RedisCommand(["NOSUCH"])).errorCode == "ERR")
                let large = String(repeating: "x", count: 900_000)
                #expect(try await client.call(RedisCommand(["ECHO", large])) == .bytes(Array(large.utf8)))
            }
        }
    }

    @Test("The URL selects user and database; a missing or wrong password is an authentication failure")
    func authentication() async throws {
        try await RedisServer.with(.server, ["--requirepass", "secret"]) { server in
            let address = "127.0.0.1:\(server.port)"
            try await Self.with("redis://\(address)", configure: { $0.password = "secret" }) { client async throws in
                let words = ["ACL", "SETUSER", "fcm", "on", ">word", "~*", "+@all"]
                #expect(try await client.call(RedisCommand(words)).text == "OK")
            }
            try await Self.with("redis://fcm@\(address)/2", configure: { $0.password = "word" }) { client in
                #expect(try await client.call(RedisCommand(["ACL", "WHOAMI"])).text == "fcm")
                _ = try await client.call(RedisCommand(["SET", "a", "1"]))
            }
            try await Self.with("redis://\(address)", configure: { $0.password = "secret" }) { client async throws in
                #expect(try await client.call(RedisCommand(["DBSIZE"])) == .integer(0))
            }
            for password in [nil, "wrong"] as [String?] {
                try await Self.with("redis://\(address)", configure: { $0.password = password }) { client in
                    let error = await #expect(throws: RedisClientError.self) {
                        try await client.call(RedisCommand(["PING"]))
                    }
                    #expect(error?.code == .authenticationFailed)
                    #expect(error?.message.contains("wrong") == false)
                }
            }
        }
    }

    @Test("The client speaks RESP2 to a server without HELLO")
    func versionTwo() async throws {
        try await RedisServer.with(.server, ["--rename-command", "HELLO", "", "--requirepass", "secret"]) { server in
            try await Self.with(Self.url(server), configure: { $0.password = "secret" }) { client async throws in
                #expect(try await client.call(RedisCommand(["GET", "none"])) == .null)
                #expect(try await client.call(RedisCommand(["CLIENT", "GETNAME"])).text == "test")
            }
        }
    }

    @Test("A call that times out closes its connection, so its late reply reaches no other call")
    func timeout() async throws {
        try await RedisServer.with { server in
            try await Self.with(Self.url(server), configure: { $0.callTimeout = .milliseconds(50) }) { client in
                _ = try await client.call(RedisCommand(["SET", "a", "before"]), timeout: .seconds(60))
                server.process.signal(SIGSTOP)
                let error = await #expect(throws: RedisClientError.self) {
                    try await client.call(RedisCommand(["GET", "a"]))
                }
                #expect(error?.code == .timedOut)
                server.process.signal(SIGCONT)
                var reply: RESPValue?
                while reply == nil {
                    reply = try? await client.call(RedisCommand(["ECHO", "after"]), timeout: .seconds(60))
                    await Task.yield()
                }
                #expect(reply?.text == "after")
            }
        }
    }

    @Test("The default configuration requires TLS 1.2 or later")
    func oldestTLS() throws {
        let configuration = RedisClient.Configuration(location: try RedisLocation("rediss://localhost"))
        #expect(configuration.tls.minimumTLSVersion == .tlsv12)
    }

    @Test("A TLS server is accepted only if its certificate names its host")
    func encrypted() async throws {
        let authority = try TestAuthority()
        let roots = try NIOSSLCertificate.fromPEMBytes(Array(authority.certificate.utf8))
        for (name, isTrusted) in [("localhost", true), ("elsewhere.internal", false)] {
            let identity = try authority.certify("redis", dnsNames: [name])
            let kind = RedisServer.Kind.encrypted(certificate: identity.certificate, key: identity.privateKey)
            try await RedisServer.with(kind) { server in
                let url = "rediss://localhost:\(server.port)"
                try await Self.with(url, configure: { $0.tls.trustRoots = .certificates(roots) }) { client in
                    let reply = try? await client.call(RedisCommand(["ECHO", "a"]))
                    #expect(reply?.text == (isTrusted ? "a" : nil))
                }
            }
        }
    }

    @Test("The client reconnects after the server closes the connection")
    func reconnects() async throws {
        try await RedisServer.with { server in
            try await Self.with(Self.url(server)) { client in
                _ = try await client.call(RedisCommand(["SET", "a", "1"]))
                _ = try? await client.call(RedisCommand(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"]))
                var reply: RESPValue?
                while reply == nil {
                    reply = try? await client.call(RedisCommand(["GET", "a"]))
                    await Task.yield()
                }
                #expect(reply?.text == "1")
            }
        }
    }

    @Test("After a failover the client moves from the demoted server to the one that Sentinel names")
    func sentinel() async throws {
        try await RedisServer.with { first in
            try await RedisServer.with(.sentinel(port: first.port)) { sentinel in
                try await Self.with("redis+sentinel://127.0.0.1:\(sentinel.port)/mymaster") { client in
                    _ = try await client.call(RedisCommand(["SET", "a", "1"]))
                    try await RedisServer.with { second in
                        // A failover without its delay.
                        try await Self.with(Self.url(first)) { direct in
                            let words = ["REPLICAOF", "127.0.0.1", "\(second.port)"]
                            _ = try await direct.call(RedisCommand(words))
                        }
                        try await Self.monitor(second.port, by: sentinel.port)
                        #expect(try await client.call(RedisCommand(["SET", "a", "2"])).errorCode == "READONLY")
                        var reply: RESPValue?
                        while reply != .status("OK") {
                            reply = try? await client.call(RedisCommand(["SET", "a", "3"]))
                            await Task.yield()
                        }
                        try await Self.with(Self.url(second)) { direct async throws in
                            #expect(try await direct.call(RedisCommand(["GET", "a"])).text == "3")
                        }
                    }
                }
            }
        }
    }

    /// Points a Sentinel at another server.
    private static func monitor(_ port: Int, by sentinel: Int) async throws {
        let program = try #require(Program.named("redis-cli"))
        for words in [["REMOVE", "mymaster"], ["MONITOR", "mymaster", "127.0.0.1", "\(port)", "1"]] {
            let outcome = try await Program.run(program, ["-p", "\(sentinel)", "SENTINEL"] + words)
            #expect(outcome.end == .code(0), "\(outcome.output)")
        }
    }

    @Test("A cluster node, a Sentinel and a replica are refused with the matching error code")
    func unusable() async throws {
        func code(_ url: String) async throws -> RedisClientError.Code? {
            try await Self.with(url) { client in
                let error = await #expect(throws: RedisClientError.self) {
                    try await client.call(RedisCommand(["PING"]))
                }
                return error?.code
            }
        }
        try await RedisServer.with(.server, ["--cluster-enabled", "yes"]) { server async throws in
            #expect(try await code(Self.url(server)) == .clusterNode)
        }
        try await RedisServer.with { server in
            try await RedisServer.with(.sentinel(port: server.port)) { sentinel async throws in
                #expect(try await code(Self.url(sentinel)) == .unusableServer)
            }
            try await RedisServer.with(.server, ["--replicaof", "127.0.0.1 \(server.port)"]) { replica async throws in
                #expect(try await code(Self.url(replica)) == .unusableServer)
            }
        }
    }

    @Test("The receive buffer stays small if every read ends within a reply")
    func endlessPieces() throws {
        let channel = EmbeddedChannel()
        let configuration = RedisClient.Configuration(location: try RedisLocation("redis://localhost"))
        let connection = RedisConnection(
            loop: RedisClient.Loop(
                eventLoop: channel.eventLoop,
                configuration: configuration,
                encryption: nil,
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            ),
            introduction: RedisConnection.State.Introduction(name: "test"),
            configuration: configuration
        )
        try channel.pipeline.syncOperations.addHandler(connection)
        let push = ">2\r\n$10\r\ninvalidate\r\n$500\r\n\(String(repeating: "x", count: 500))\r\n"
        let cut = push.index(push.startIndex, offsetBy: 20)
        let piece = ByteBuffer(string: "\(push[cut...])\(push[..<cut])")
        try channel.writeInbound(ByteBuffer(string: String(push[..<cut])))
        for _ in 0..<2_000 { try channel.writeInbound(piece) }
        #expect(connection.received.readableBytes < push.utf8.count)
        #expect(connection.received.storageCapacity <= 16 * 1_024)
        _ = try channel.finish()
    }

    @Test("After shutdown commands are refused")
    func shutDown() async throws {
        try await RedisServer.with { server in
            try await Self.with(Self.url(server)) { client in
                _ = try await client.call(RedisCommand(["PING"]))
                await client.shutdown()
                let error = await #expect(throws: RedisClientError.self) {
                    try await client.call(RedisCommand(["PING"]))
                }
                #expect(error?.code == .shutDown)
            }
        }
    }

    @Test("Waits between attempts grow to half a second")
    func rests() {
        let rests = (0...8).map { RedisClient.Loop.rest(after: $0, jitter: 1) }
        #expect(rests == [25, 50, 100, 200, 400, 500, 500, 500, 500].map { Duration.milliseconds($0) })
        #expect(RedisClient.Loop.rest(after: 0, jitter: 0.5) == .microseconds(12_500))
    }
}
