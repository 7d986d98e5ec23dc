import Foundation
import GatewayTestKit
import ProcessTestKit
import RedisTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("The store in PostgreSQL")
    struct PostgreSQLStoreTests {
        /// Creates a database and returns its address.
        private func newDatabase(_ name: String) async throws -> String {
            let server = try PostgreSQLServer.shared.get()
            let psql = try #require(Program.named("psql"))
            let administrator = server.url(database: "postgres", user: "postgres")
            let made = try await Program.run(psql, ["--quiet", administrator, "--command", "CREATE DATABASE \(name)"])
            made.expect(0, "CREATE DATABASE")
            return server.url(database: name, user: "postgres")
        }

        /// The variables of a gateway on a database, with limits of its own.
        private func environment(
            _ directory: PrivateDirectory,
            _ url: String,
            _ settings: [String: String?] = [:]
        ) -> [String: String] {
            var all: [String: String?] = [
                "GATEWAY_STORE_URL": url, "GATEWAY_LIMITS_PER_REPLICA": "true",
                // A lease must outlast two of these timeouts.
                "GATEWAY_UPSTREAM_TIMEOUT_MS": "14000", "GATEWAY_UPSTREAM_CONNECT_TIMEOUT_MS": "14000",
            ]
            all.merge(settings) { $1 }
            return directory.environment(all)
        }

        @Test("A PostgreSQL store is migrated, served by one process, read by verbs, and kept over a restart")
        func served() async throws {
            let url = try await self.newDatabase("served")
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let environment = self.environment(directory, url)
                    let early = try await Program.gateway(["serve"], environment: environment).expect(1)
                    #expect(early.errors.contains("fcm-gateway store migrate"))
                    try await Program.gateway(["store", "migrate"], environment: environment).expect(0)
                    let again = try await Program.gateway(
                        ["store", "migrate", "--output", "json"],
                        environment: environment
                    )
                    again.expect(0)
                    #expect(again.json["applied"]?.elements.isEmpty == true)

                    let message = #"{"token": "a-device"}"#
                    let headers = ["Idempotency-Key": "once"]
                    let (key, first) = try await RunningGateway.serving(environment) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "k", endpoint: emulator.address)
                        let first = try await gateway.send(message, key: key, headers: headers)
                        #expect(first.status == 200)
                        let second = try await Program.gateway(["serve"], environment: environment).expect(1)
                        #expect(second.errors.contains("Another gateway process"))
                        try await Program.auditVerify(environment).expect(0)
                        try await gateway.stopInOrder()
                        return (key, first.text)
                    }
                    try await Program.auditVerify(environment).expect(0)
                    try await RunningGateway.serving(environment) { gateway in
                        let replay = try await gateway.send(message, key: key, headers: headers)
                        #expect(replay.status == 200)
                        #expect(replay.text == first)
                        #expect(try await gateway.metric(#"fcmgw_store_up{store="postgresql"}"#) == "1")
                        try await gateway.stopInOrder()
                    }
                    try await Program.auditVerify(environment).expect(0)
                    let export = try await Program.gateway(["audit", "export"], environment: environment).expect(0)
                    #expect(export.output.contains(#""action":"message.send""#))
                    let doctor = try await Program.gateway(["doctor", "--offline"], environment: environment)
                    #expect(doctor.output.contains("opens, with 1 tenant"))
                }
            }
        }

        @Test("store copy copies a stopped gateway's SQLite store once, and a replica serves the copy")
        func copied() async throws {
            let url = try await self.newDatabase("copied")
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let file = directory.environment()
                    let replica = self.environment(directory, url, ["GATEWAY_DATA_DIR": directory.path("replica")])
                    let message = #"{"token": "a-device"}"#
                    let headers = ["Idempotency-Key": "once"]
                    let from = "sqlite:\(directory.path("data/gateway.sqlite"))"
                    let copy = ["store", "copy", "--from", from, "--to", url, "--output", "json"]
                    let early = try await Program.gateway(copy, environment: file).expect(1)
                    #expect(early.errors.contains("There is no store"))
                    let (key, first) = try await RunningGateway.serving(file) { gateway in
                        let key = try await gateway.makeTenant("demo", serverKey: "k", endpoint: emulator.address)
                        let first = try await gateway.send(message, key: key, headers: headers)
                        #expect(first.status == 200)
                        let served = try await Program.gateway(copy, environment: file).expect(1)
                        #expect(served.errors.contains("stop it first"))
                        try await gateway.stopInOrder()
                        return (key, first.text)
                    }
                    let bare = try await Program.gateway(copy, environment: file).expect(1)
                    #expect(bare.errors.contains("fcm-gateway store migrate"))
                    try await Program.gateway(["store", "migrate"], environment: replica).expect(0)
                    let other = file.merging(["GATEWAY_MASTER_KEY": RunningGateway.masterKey(9)]) { $1 }
                    let wrong = try await Program.gateway(copy, environment: other).expect(1)
                    #expect(wrong.errors.contains("another master key"))
                    let done = try await Program.gateway(copy + ["--progress"], environment: file).expect(0)
                    #expect(done.json["tenants"]?.int == 1)
                    #expect(done.errors.contains("rows: "))
                    #expect(done.errors.contains("(100 %)"))
                    try await Program.auditVerify(replica).expect(0)
                    let twice = try await Program.gateway(copy, environment: file).expect(1)
                    #expect(twice.errors.contains("not empty"))
                    try await RunningGateway.serving(replica) { gateway in
                        let replay = try await gateway.send(message, key: key, headers: headers)
                        #expect(replay.status == 200)
                        #expect(replay.text == first)
                        #expect(try await gateway.send(message, key: key).status == 200)
                        try await gateway.stopInOrder()
                    }
                    try await Program.auditVerify(replica).expect(0)
                    try await Program.auditVerify(file).expect(0)
                }
            }
        }

        /// The number of registered replicas.
        private func replicas(_ psql: URL, _ url: String) async throws -> String {
            let count = "SELECT count(*) FROM replicas"
            let asked = try await Program.run(
                psql,
                ["--quiet", "--tuples-only", "--no-align", url, "--command", count]
            )
            return asked.expect(0, count).output.trimmingCharacters(in: .whitespacesAndNewlines)
        }

        @Test("A start that is stopped while it waits for the store leaves no registered replica")
        func stoppedStart() async throws {
            let url = try await self.newDatabase("stopped_start")
            let psql = try #require(Program.named("psql"))
            try await PrivateDirectory.with { directory in
                let environment = self.environment(directory, url)
                try await Program.gateway(["store", "migrate"], environment: environment).expect(0)
                let hold = ["LOCK TABLE tenants IN ACCESS EXCLUSIVE MODE", "SELECT pg_sleep(60)"]
                let arguments = [url, "--single-transaction"] + hold.flatMap { ["--command", $0] }
                try await ChildProcess.with(psql, arguments) { holder in
                    _ = try await holder.output.first { $0.contains("LOCK TABLE") ? true : nil }
                    try await ChildProcess.with(Program.gateway(), ["serve"], environment: environment) { process in
                        while try await self.replicas(psql, url) == "0" {}
                        process.signal(SIGTERM)
                        #expect(try await process.end() == .code(0))
                        #expect(!process.errors.text.contains("Serving."))
                    }
                    #expect(try await self.replicas(psql, url) == "0")
                }
            }
        }

        @Test("A start that waits for PostgreSQL logs the reason, answers probes and ends on SIGTERM")
        func awaitedServer() async throws {
            try await PrivateDirectory.with { directory in
                let environment = self.environment(
                    directory,
                    "postgres://u@127.0.0.1:1/d",
                    ["GATEWAY_STORE_PASSWORD": "canary-password", "GATEWAY_LOG_LEVEL": "debug"]
                )
                try await ChildProcess.with(Program.gateway(), ["serve"], environment: environment) { process in
                    let port = try await process.errors.first { text in
                        text.firstMatch(of: #/"message":"Listening\.".*"listener":"admin","port":(\d+)/#)
                            .map { String($0.1) }
                    }
                    let line = try await process.errors.first { text in
                        text.split(separator: "\n").first { $0.contains("The store can't be reached yet") }
                    }
                    #expect(line.contains(#""level":"warning""#) && line.contains("Connection refused"), "\(line)")
                    #expect(try await Reply.to("GET", "http://127.0.0.1:\(port)/livez").status == 200)
                    let readiness = try await Reply.to("GET", "http://127.0.0.1:\(port)/readyz")
                    #expect(readiness.status == 503 && readiness.text.contains("waits for its store"))
                    process.signal(SIGTERM)
                    #expect(try await process.end() == .code(0))
                    #expect(!process.errors.text.contains("canary") && !process.errors.text.contains("Serving."))
                }
            }
        }

        @Test("A failed start leaves no registered replica")
        func failedStart() async throws {
            let url = try await self.newDatabase("failed_start")
            let psql = try #require(Program.named("psql"))
            func replicas() async throws -> String { try await self.replicas(psql, url) }
            try await RedisServer.with(.server, ["--requirepass", "secret"]) { redis in
                try await PrivateDirectory.with { directory in
                    let environment = self.environment(directory, url)
                    try await Program.gateway(["store", "migrate"], environment: environment).expect(0)
                    try await RunningGateway.serving(environment) { gateway in
                        #expect(try await replicas() == "1")
                        try await gateway.stopInOrder()
                    }
                    let wrong = self.environment(
                        directory,
                        url,
                        [
                            "GATEWAY_LIMITS_PER_REPLICA": nil,
                            "GATEWAY_LIMITS_REDIS_URL": "redis://127.0.0.1:\(redis.port)",
                            "GATEWAY_LIMITS_REDIS_PASSWORD": "wrong",
                        ]
                    )
                    let refused = try await Program.gateway(["serve"], environment: wrong).expect(1)
                    #expect(
                        refused.errors.contains("GATEWAY_LIMITS_REDIS_URL: The server refuses the user or the password")
                    )
                    #expect(try await replicas() == "0")
                }
            }
        }
    }
}
