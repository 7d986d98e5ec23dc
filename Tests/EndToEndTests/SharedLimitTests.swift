import Foundation
import GatewayTestKit
import ProcessTestKit
import RedisTestKit
import Testing

extension EndToEnd {
    @Suite("Limits in Redis")
    struct SharedLimitTests {
        private static let fallback = "fcmgw_limiter_fallback_active"

        @Test("limits.redisCaFile verifies a Redis with TLS, and a failure shows no BoringSSL error")
        func encryptedRedis() async throws {
            let authority = try TestAuthority()
            let identity = try authority.certify("redis", dnsNames: ["localhost"])
            let kind = RedisServer.Kind.encrypted(certificate: identity.certificate, key: identity.privateKey)
            try await RedisServer.with(kind) { server in
                try await PrivateDirectory.with { directory in
                    let file = try directory.write(authority.certificate, to: "redis-ca.crt")
                    var environment = directory.environment()
                    environment["GATEWAY_LIMITS_REDIS_URL"] = "rediss://localhost:\(server.port)"
                    let refused = try await Self.doctor(
                        ["--offline"],
                        environment,
                        says: "not signed by a trusted authority"
                    )
                    #expect(!refused.text.contains("BoringSSL"), "\(refused.text)")
                    environment["GATEWAY_LIMITS_REDIS_CA_FILE"] = file
                    _ = try await Self.doctor(["--offline"], environment, says: "Redis: answers")
                }
            }
        }

        @Test("A gateway starts without its Redis and ends the fallback once Redis answers")
        func redisComesBack() async throws {
            try await RedisServer.with { server in
                server.process.signal(SIGSTOP)
                try await PrivateDirectory.with { directory in
                    let environment = directory.environment([
                        "GATEWAY_LIMITS_REDIS_URL": "redis://127.0.0.1:\(server.port)",
                        // On a busy machine answers are slow, and recovery takes several in a row.
                        "GATEWAY_LIMITS_REDIS_TIMEOUT_MS": "1000",
                    ])
                    try await RunningGateway.serving(environment) { gateway in
                        try await wait { try await gateway.metric(Self.fallback) == "1" }
                        server.process.signal(SIGCONT)
                        try await wait { try await gateway.metric(Self.fallback) == "0" }
                    }
                }
            }
        }

        @Test("A Redis Cluster node, a wrong password and a missing password end the start with the reason")
        func refused() async throws {
            let variable = "GATEWAY_LIMITS_REDIS_PASSWORD"
            for (settings, password, message) in [
                (["--cluster-enabled", "yes"], "wrong", "The server is a node of a Redis Cluster"),
                (["--requirepass", "secret"], "wrong", "The server refuses the user or the password"),
                (
                    ["--requirepass", "secret"], nil,
                    "The server asks for a password, and none is configured; set \(variable) or "
                        + "\(variable)_FILE"
                ),
            ] as [([String], String?, String)] {
                try await RedisServer.with(.server, settings) { server in
                    try await PrivateDirectory.with { directory in
                        let url = "redis://127.0.0.1:\(server.port)"
                        let environment = directory.environment(["GATEWAY_LIMITS_REDIS_URL": url, variable: password])
                        let outcome = try await Program.gateway(["serve"], environment: environment).expect(1)
                        #expect(outcome.errors.contains("GATEWAY_LIMITS_REDIS_URL: \(message)"))
                        #expect(!outcome.errors.contains("wrong"))
                        try await Self.doctor(["--offline"], environment, says: message).expect(1)
                    }
                }
            }
        }

        /// Runs `doctor` until it prints some words: on a busy machine Redis may exceed its one-second timeout.
        private static func doctor(
            _ options: [String],
            _ environment: [String: String],
            says words: String
        ) async throws -> Program.Outcome {
            try await eventually {
                let outcome = try await Program.gateway(["doctor"] + options, environment: environment)
                return outcome.output.contains(words) ? outcome : nil
            }
        }
    }
}
