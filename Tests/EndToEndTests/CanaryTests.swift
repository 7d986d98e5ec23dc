import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Canaries")
    struct CanaryTests {
        // Each holds characters that JSON, URLs or Base64 encode differently.
        static let serverKey = #"canary-server"key\/+%"#
        static let adminToken = #"canary-admin"token\/+%-of-32-or-more"#
        static let wrongAdminToken = #"canary-wrong"admin\/+%"#
        static let wrongKey = #"fgw_canary-wrong"key\/+%"#
        static let token = #"canary:device"token\/+%é"#
        /// Visible ASCII only, like FCM's replacement tokens.
        static let replacement = #"canary:replacement"token\/+%"#
        static let payload = #"canary payload"value\/+%é"#
        static let masterKey = Array(UInt8(101)...UInt8(132))
        static let newMasterKey = Array(UInt8(190)...UInt8(221))
        static let wrongMasterKey = Array(UInt8(222)...UInt8(253))

        private static let requestCanaries = [
            Canary("server key", serverKey), Canary("admin token", adminToken),
            Canary("wrong admin token", wrongAdminToken), Canary("wrong key", wrongKey), Canary("token", token),
            Canary("replacement", replacement),
            Canary("payload", payload), Canary("master key", bytes: masterKey),
            Canary("new master key", bytes: newMasterKey), Canary("wrong master key", bytes: wrongMasterKey),
            Canary("topic", topic), Canary("idempotency key", idempotencyKey), Canary("group", group),
            Canary("member", member),
            Canary("odd input", oddInput),
        ]

        @Test("Secrets, tokens and payloads reach no log, metric, audit record, file, refusal or command output")
        func canaries() async throws {
            let settings = [
                "GATEWAY_ADMIN_TOKEN": Self.adminToken,
                "GATEWAY_MASTER_KEY": Data(Self.masterKey).base64EncodedString(),
                "GATEWAY_LOG_LEVEL": "trace",
                "GATEWAY_LOG_FORMAT": "json",
                "GATEWAY_HTTP_HEAD_TIMEOUT_MS": "5000",
                "GATEWAY_HTTP_BODY_TIMEOUT_MS": "5000",
            ]
            try await Site.with(settings, serverKey: Self.serverKey) { site in
                let gateway = site.gateway
                var trial = Trial(gateway: gateway, emulator: site.emulator, environment: site.environment)
                trial.keys.append(site.key)
                try await self.run(&trial)
                trial.collect(filesIn: site.data, "while it serves")
                try await gateway.stopInOrder()
                trial.found["standard output"] = gateway.process.output.bytes
                trial.found["standard error"] = gateway.process.errors.bytes
                trial.collect(filesIn: site.data, "at rest")
                try await self.changeMasterKey(&trial, site.directory)
                trial.collect(filesIn: site.data, "under the new master key")
                let v1 = trial.v1Secrets.map { Canary($0.name, $0.text) }
                let keys = trial.keys.map { Canary("API key", String($0.split(separator: "_")[2])) }
                try self.check(trial, canaries: Self.requestCanaries + keys + v1)
            }
        }

        private func run(_ trial: inout Trial) async throws {
            try await self.sendWhatSucceeds(&trial)
            try await self.sendWhatIsRefused(&trial)
            try await self.sendWhatFailsUpstream(&trial)
            try await self.callWithoutRights(&trial)
            try await self.callAdministration(&trial)
            try await self.sendOddInputs(&trial)
            try await self.sendByV1(&trial)
            try await trial.collectAudit(token: Self.token)
        }

        private func sendWhatSucceeds(_ trial: inout Trial) async throws {
            let content: JSON = [
                "data": ["a": .string(Self.payload)],
                "notification": [
                    "title": .string(Self.payload), "body": .string(Self.payload),
                    "body_loc_args": [.string(Self.payload)],
                ],
                "collapse_key": .string(Self.payload),
            ]
            let replaced = "\(Self.token)CANONICAL_\(Self.replacement)"
            for (name, target) in [
                ("token", .string(Self.token)), ("token", "\(replaced)2"),
                ("tokens", [.string(Self.token), "\(Self.token)ERROR_NotRegistered", "b"]), ("topic", "canary-topic"),
            ] as [(String, JSON)] {
                var message = content
                message[name] = target
                try await trial.send(message, expecting: 200)
            }
            var message = content
            (message["token"], message["dry_run"]) = (.string(Self.token), true)
            try await trial.send(message, expecting: 200)
            message = content
            message["tokens"] = ["\(replaced)3", "b"]
            // The second answer is a replay.
            for _ in 1...2 {
                let headers = ["Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"]
                try await trial.send(message, headers: headers, expecting: 200)
            }
        }

        private func sendWhatIsRefused(_ trial: inout Trial) async throws {
            let token = JSON.string(Self.token)
            let payload = JSON.string(Self.payload)
            let large = JSON.string(String(repeating: Self.payload, count: 300))
            for body: JSON in [
                ["token": token, "unknown": payload],
                ["token": token, "ttl": payload],
                ["token": token, "priority": payload],
                ["token": token, "data": payload],
                ["token": token, "data": ["from": payload]],
                ["token": token, "data": ["a": [payload]]],
                ["token": token, "data": ["a": large]],
                ["token": token, "topic": payload],
                ["token": "/topics/\(Self.token)"],
                ["topic": token],
                ["condition": token],
                ["fid": token],
                ["tokens": [token, 1]],
            ] {
                try await trial.send(body, expecting: 422)
            }
            try await trial.send(["device_group": token], expecting: 404)
            let texts = [
                #"{"token": "\#(Self.token)"#, #"{"token": \#(Self.token)}"#, Self.payload,
                #"{"data": {"a": "\#(Self.payload)"}, "data": {"a": "x"}}"#,
                String(repeating: "[", count: 20) + #""\#(Self.payload)""#,
            ]
            for text in texts { try await trial.send(text: text, expecting: 400) }
            try await trial.send(text: #"{"token": "a"}"#, headers: ["Content-Type": "text/plain"], expecting: 415)
        }

        private func sendWhatFailsUpstream(_ trial: inout Trial) async throws {
            for fault in UpstreamFault.all {
                if let action = fault.action {
                    try await trial.emulator.add(#"{"times": \#(fault.maxCalls), "action": \#(action)}"#)
                }
                let headers = fault.timeoutMilliseconds.map { ["X-Request-Timeout-Ms": String($0)] } ?? [:]
                let message: JSON = ["token": "\(Self.token)\(fault.token)", "data": ["a": .string(Self.payload)]]
                try await trial.send(message, headers: headers, expecting: fault.status)
                try await trial.emulator.deleteFaults()
                // A success keeps the breaker closed.
                try await trial.send(["token": .string(Self.token)], expecting: 200)
            }
            // Secrets that the upstream echoes must not be passed on.
            let echo = JSON.string("\(Self.serverKey) \(Self.token) \(Self.payload)")
            for status in [200, 400, 401, 404, 500, 503] {
                let action: JSON = ["type": "status", "status": .integer(status), "body": echo]
                let fault: JSON = ["times": 3, "action": action]
                try await trial.emulator.add(fault.encoded)
                let headers = ["X-Request-Timeout-Ms": "1000"]
                try await trial.send(["token": .string(Self.token)], headers: headers, expecting: nil)
                try await trial.emulator.deleteFaults()
                try await trial.send(["token": .string(Self.token)], expecting: 200)
            }
            try await ClosedPort.with { port in
                let endpoint = "http://127.0.0.1:\(port)"
                let key = try await trial.gateway.makeTenant("lost", serverKey: Self.serverKey, endpoint: endpoint)
                trial.keys.append(key)
                let reply = try await trial.gateway.send(#"{"token": "a"}"#, tenant: "lost", key: key)
                #expect(reply.status == 503)
                trial.keep(reply, "a server that refuses connections")
            }
        }

        /// Sends by HTTP v1, and collects the service account's key, access tokens and assertions as secrets.
        private func sendByV1(_ trial: inout Trial) async throws {
            let account = try await trial.emulator.makeServiceAccount(project: "canary-project")
            // Single lines from the middle of the key, because re-encoded PEM may have other line ends.
            let lines = (account["private_key"]?.text ?? "").split(separator: "\n")
            for (number, line) in lines.dropFirst(2).dropLast(2).enumerated() where number.isMultiple(of: 6) {
                trial.v1Secrets.append((name: "private key, line \(number)", text: String(line)))
            }
            #expect(trial.v1Secrets.count >= 3)
            try await trial.gateway.useV1("demo", account, endpoint: trial.emulator.address)
            for (target, status) in [
                (Self.token, 200), (Self.token + "ERROR_UNREGISTERED", 410), (Self.token + "ERROR_INTERNAL", 502),
                (Self.token + "ERROR_SENDER_ID_MISMATCH", 422),
            ] {
                let message: JSON = ["token": .string(target), "data": ["a": .string(Self.payload)]]
                try await trial.send(message, expecting: status)
            }
            let (path, key) = ("/v1/tenants/demo/messages/explain", trial.keys.first ?? "")
            let explained = try await trial.gateway.ask("POST", path, key: key, #"{"token": "a"}"#)
            #expect(explained.status == 200)
            trial.keep(explained, "an explanation")
            for path in ["tenants/demo/credentials/v1", "tenants/demo"] {
                trial.keep(try await trial.gateway.admin("GET", path), "GET \(path)")
            }
            trial.keep(try await trial.gateway.admin("POST", "tenants/demo/credentials/check"), "a check that passes")
            // No refusal quotes the account.
            for member in account.keys {
                var bad: JSON = ["service_account": account]
                bad["service_account"]?[member] = "x"
                let reply = try await trial.gateway.admin("PUT", "tenants/demo/credentials/v1", bad.encoded)
                #expect(reply.status == (member == "private_key_id" || member == "project_id" ? 200 : 422), "\(member)")
                trial.keep(reply, "a service account with a wrong \(member)")
            }
            try await trial.gateway.useV1("demo", account, endpoint: trial.emulator.address)
            try await trial.emulator.forget(account)
            try await trial.emulator.revokeAccessTokens()
            try await trial.send(["token": .string(Self.token)], expecting: 502)
            trial.keep(try await trial.gateway.admin("POST", "tenants/demo/credentials/check"), "a check that fails")
            for entry in try await trial.emulator.journal() {
                for header in entry.headers("authorization") where header.hasPrefix("Bearer ya29.") {
                    trial.v1Secrets.append((name: "access token", text: String(header.dropFirst("Bearer ".count))))
                }
                if entry["path"]?.text == "/token", let assertion = entry["body"]?.text?.split(separator: "=").last {
                    trial.v1Secrets.append((name: "assertion", text: String(assertion.suffix(80))))
                }
            }
            #expect(trial.v1Secrets.contains { $0.name == "access token" })
            #expect(trial.v1Secrets.contains { $0.name == "assertion" })
        }

        private func callWithoutRights(_ trial: inout Trial) async throws {
            let address = trial.gateway.address
            let messages = "/v1/tenants/demo/messages"
            let wrongKey = Self.wrongKey
            // Another tenant's key: only a well-formed key is looked up.
            let foreignKey = trial.keys.last ?? ""
            for (authorization, status) in [
                ("Bearer \(wrongKey)", 401), ("Basic \(wrongKey)", 401), ("Bearer \(foreignKey)", 404),
                ("Bearer \(Self.adminToken)", 401), ("Bearer \(foreignKey.dropLast(3))abc", 401),
            ] {
                let headers = ["Authorization": authorization, "Content-Type": "application/json"]
                let reply = try await Reply.to("POST", address + messages, headers: headers, body: "{}")
                #expect(reply.status == status, "\(reply.text)")
                trial.keep(reply, "no rights, \(status)")
            }
            let encoded = Self.token.addingPercentEncoding(withAllowedCharacters: .unreserved) ?? ""
            let own = ["Authorization": "Bearer \(trial.keys.first ?? "")"]
            for path in ["/\(encoded)", "/v1/tenants/\(encoded)/messages", "/v1/tenants/demo/audit?\(encoded)=1"] {
                let reply = try await Reply.to("GET", address + path, headers: own)
                #expect(reply.status >= 400)
                trial.keep(reply, "a token in the address")
            }
            let head = "POST \(messages) HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(Self.wrongKey)\r\n"
            for bytes in [
                head + "X-Token: \(String(repeating: Self.token, count: 1_000))\r\n\r\n",
                head, head + "Content-Length: 100\r\n\r\n\(Self.payload)",
                head + "Host: \(Self.token)\r\n\r\n", "GET /\(String(repeating: encoded, count: 200)) HTTP/1.1\r\n\r\n",
            ] {
                trial.keep(try await RawExchange.reply(port: trial.gateway.port, sending: bytes), "hostile bytes")
            }
        }

        private func callAdministration(_ trial: inout Trial) async throws {
            let base = "\(trial.gateway.adminAddress)/admin/v1/"
            let wrong = ["Authorization": "Bearer \(Self.wrongAdminToken)", "Content-Type": "application/json"]
            trial.keep(try await Reply.to("GET", base + "tenants", headers: wrong), "wrong admin token")
            let key = ["Authorization": "Bearer \(trial.keys.first ?? "")", "Content-Type": "application/json"]
            trial.keep(try await Reply.to("GET", base + "tenants", headers: key), "a key for administration")
            let bodies: [(String, String, JSON)] = [
                ("PUT", "tenants/demo/credentials/legacy", ["server_key": "\(Self.serverKey) x"]),
                ("PUT", "tenants/demo/credentials/legacy", ["server_key": [.string(Self.serverKey)]]),
                (
                    "PUT", "tenants/demo/credentials/legacy",
                    ["server_key": .string(Self.serverKey), "endpoint": .string(Self.serverKey)]
                ),
                ("PUT", "tenants/none/credentials/legacy", ["server_key": .string(Self.serverKey)]),
                ("POST", "tenants/demo/keys", ["scopes": [.string(Self.payload)]]),
                ("PUT", "tenants/demo/limits", ["device": .string(Self.payload)]),
            ]
            for (method, path, body) in bodies {
                let reply = try await trial.gateway.admin(method, path, body.encoded)
                #expect(reply.status >= 400, "\(path)")
                trial.keep(reply, "\(method) \(path)")
            }
            for path in ["tenants/demo/credentials/legacy", "tenants/demo/keys", "tenants/demo", "tenants"] {
                trial.keep(try await trial.gateway.admin("GET", path), "GET \(path)")
            }
            try await self.runVerbs(&trial)
        }

        private func runVerbs(_ trial: inout Trial) async throws {
            let admin = ["GATEWAY_ADMIN_URL": trial.gateway.adminAddress, "GATEWAY_ADMIN_TOKEN": Self.adminToken]
            let put = [
                "credential", "put", "demo", "legacy", "--server-key-file", "-", "--endpoint", trial.emulator.address,
                "--output", "json",
            ]
            let stored = try await Program.gateway(put, environment: admin, input: Self.serverKey)
            trial.keep(stored, "credential put")
            var wrong = admin
            wrong["GATEWAY_ADMIN_TOKEN"] = Self.wrongAdminToken
            trial.keep(try await Program.gateway(["tenant", "list"], environment: wrong), "tenant list")
            for verb in [["config", "show"], ["config", "check"], ["serve"], ["audit", "verify"]] {
                let outcome = try await Program.gateway(verb, environment: trial.environment)
                trial.keep(outcome, verb.joined(separator: " "))
            }
            var damaged = trial.environment
            damaged["GATEWAY_MASTER_KEY"] = Self.serverKey
            damaged["GATEWAY_ADMIN_TOKEN"] = Self.wrongAdminToken + "\n"
            trial.keep(try await Program.gateway(["serve"], environment: damaged), "serve with damaged secrets")
        }

        private func check(_ trial: Trial, canaries: [Canary]) throws {
            // The search below proves nothing unless these canaries were sent.
            let sent = trial.sentToFCM
            for name in ["server key", "token", "payload"] {
                let canary = try #require(canaries.first { $0.name == name })
                #expect(canary.isIn(sent), "\(name)")
            }
            let log = try #require(trial.found["standard error"])
            #expect(log.range(of: Data(#""level":"debug""#.utf8)) != nil)
            for line in log.split(separator: UInt8(ascii: "\n")) {
                #expect(
                    (try? JSON(parsing: Data(line)))?["message"]?.text != nil,
                    "\(String(decoding: line, as: UTF8.self))"
                )
            }
            for (place, bytes) in trial.found {
                // The store holds the members of device groups, because FCM doesn't return them.
                let isStore = place.hasPrefix("gateway.sqlite")
                for canary in canaries where !isStore || !["group", "member"].contains(canary.name) {
                    #expect(!canary.isIn(bytes), "\(canary.name) in \(place)")
                }
            }
        }

        @Test("A canary is recognised in every form", arguments: 0..<7)
        func forms(offset: Int) throws {
            let canary = Canary("token", Self.token)
            let around = String(repeating: "z", count: offset)
            let text = around + Self.token + around
            let plain = Data(text.utf8)
            #expect(canary.isIn(plain))
            #expect(canary.isIn(Data(plain.base64EncodedString().utf8)))
            let percent = try #require(text.addingPercentEncoding(withAllowedCharacters: .unreserved))
            #expect(canary.isIn(Data(percent.utf8)))
            #expect(canary.isIn(try JSONEncoder().encode(text)))
            #expect(canary.isIn(try JSONSerialization.data(withJSONObject: [text])))
            #expect(!canary.isIn(Data(text.replacing("canary", with: "parrot").utf8)))
        }
    }
}
