import Foundation
import GatewayTestKit
import ProcessTestKit
import RedisTestKit
import Testing

extension EndToEnd {
    @Suite("Limits in Redis")
    struct SharedLimitTests {
        private static let fallback = "fcmgw_limiter_fallback_active"

        @Test("The authorities of a Redis with TLS are those of its settings; a failure is said in words")
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

        @Test("Without its Redis a gateway starts all the same, and shares limits when that has come back")
        func redisComesBack() async throws {
            try await RedisServer.with { server in
                server.process.signal(SIGSTOP)
                try await PrivateDirectory.with { directory in
                    let environment = directory.environment([
                        "GATEWAY_LIMITS_REDIS_URL": "redis://127.0.0.1:\(server.port)",
                        // The machine may be busy with other tests, and several answers in a row are waited for.
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

        @Test("A node of a cluster and a wrong password end the start with a line that says so")
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

        /// What `doctor` says, once it has an answer from Redis: it asks for a second, in which a busy machine may not.
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
