import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Idempotency-Key after kill -9")
    struct IdempotencyTests {
        private static let project = "acme-push"
        /// The number of a list's recipients that are marked as started together.
        private static let startsPerMark = 200
        /// The number of concurrent HTTP v1 calls of a list.
        private static let callsAtATime = 100

        /// Successive gateways on one data directory, and the fake FCM that outlives them.
        private struct Scene {
            let emulator: Emulator
            let environment: [String: String]
            let data: String

            /// Runs a body with a gateway that is killed afterwards, while idle.
            func life<Result>(_ body: (RunningGateway) async throws -> Result) async throws -> Result {
                try await self.shortLife { gateway in
                    let result = try await body(gateway)
                    try await self.kill(gateway)
                    return result
                }
            }

            /// Runs a body with a gateway that the body kills.
            func shortLife<Result>(_ body: (RunningGateway) async throws -> Result) async throws -> Result {
                try await RunningGateway.serving(self.environment, body)
            }

            func kill(_ gateway: RunningGateway) async throws {
                try await gateway.kill()
                let verification = try await Program.auditVerify(self.data)
                #expect([.code(0), .code(2)].contains(verification.end), "\(verification.output)")
            }

            func waitForCalls(_ count: Int) async throws {
                try await wait { try await self.calls().count >= count }
            }

            /// The sends that FCM received.
            func calls() async throws -> [JSON] {
                try await self.emulator.journal(limit: 10_000)
                    .filter { $0["path"]?.text == "/fcm/send" || $0["path"]?.text?.hasSuffix("/messages:send") == true }
            }

            /// The number of times that FCM received each token.
            func counts() async throws -> [String: Int] {
                var counts: [String: Int] = [:]
                for call in try await self.calls() {
                    for match in (call["body"]?.text ?? "").matches(of: #/"(device-[0-9a-z-]+)"/#) {
                        counts[String(match.1), default: 0] += 1
                    }
                }
                return counts
            }
        }

        private func run(_ body: (Scene) async throws -> Void) async throws {
            try await PrivateDirectory.with { directory in
                try await Emulator.with(tlsDirectory: directory.path("tls")) { emulator in
                    let environment = directory.environment([
                        "GATEWAY_UPSTREAM_CA_FILE": directory.path("tls/certificate.pem"),
                        "GATEWAY_UPSTREAM_ALLOWED_TOKEN_HOSTS": emulator.host,
                    ])
                    try await body(Scene(emulator: emulator, environment: environment, data: directory.path("data")))
                }
            }
        }

        /// Makes the tenant `demo`, which sends by one of the protocols.
        private func makeTenant(_ gateway: RunningGateway, _ scene: Scene, _ upstream: String) async throws -> String {
            let key = try await gateway.makeTenant("demo", serverKey: "any", endpoint: scene.emulator.address)
            if upstream == "v1" {
                let account = try await scene.emulator.makeServiceAccount(project: Self.project)
                try await gateway.useV1("demo", account, endpoint: scene.emulator.address)
            }
            return key
        }

        private static func list(_ count: Int) -> (tokens: [String], body: String) {
            let tokens = (0..<count).map { "device-\($0)" }
            let body: JSON = ["tokens": .array(tokens.map(JSON.string))]
            return (tokens, body.encoded)
        }

        private static let once = ["Idempotency-Key": "\"8e03978e-40d5-43dd-bc93-6894a57f9324\""]

        @Test("After a kill a repeat gets the first answer's body and sends nothing", arguments: ["legacy", "v1"])
        func replay(upstream: String) async throws {
            try await self.run { scene in
                let (_, list) = Self.list(300)
                let bodies = [#"{"token": "device-a"}"#, list]
                let (key, first) = try await scene.life { gateway in
                    let key = try await self.makeTenant(gateway, scene, upstream)
                    var replies: [Reply] = []
                    for (number, body) in bodies.enumerated() {
                        let headers = ["Idempotency-Key": "key-\(number)"]
                        replies.append(try await gateway.send(body, key: key, headers: headers))
                    }
                    return (key, replies)
                }
                let calls = try await scene.calls().count
                try await scene.life { gateway in
                    for (number, body) in bodies.enumerated() {
                        let headers = ["Idempotency-Key": "key-\(number)"]
                        let again = try await gateway.send(body, key: key, headers: headers)
                        #expect(again.status == 200)
                        #expect(again.body == first[number].body)
                        #expect(again.headers["idempotent-replayed"] == "true")
                        #expect(first[number].headers["idempotent-replayed"] == nil)
                    }
                    let metrics = try await gateway.metrics()
                    #expect(metrics.contains(#"fcmgw_idempotency_total{result="replay"} 2"#))
                }
                #expect(try await scene.calls().count == calls)
            }
        }

        @Test(
            "After a kill during FCM's call a repeat answers outcome_unknown and sends nothing",
            arguments: ["legacy", "v1"]
        )
        func single(upstream: String) async throws {
            try await self.run { scene in
                try await scene.emulator.add(
                    #"{"times": 1, "action": {"type": "hang"}, "match": {"token": "device-a"}}"#
                )
                let key = try await scene.shortLife { gateway in
                    let key = try await self.makeTenant(gateway, scene, upstream)
                    async let lost = try? gateway.send(#"{"token": "device-a"}"#, key: key, headers: Self.once)
                    try await scene.waitForCalls(1)
                    let early = try await gateway.send(#"{"token": "device-a"}"#, key: key, headers: Self.once)
                    #expect(early.status == 409)
                    #expect(early.code == "idempotency_in_progress")
                    try await scene.kill(gateway)
                    #expect(await lost == nil)
                    return key
                }
                try await scene.life { gateway in
                    var settled = JSON.null
                    for isReplay in [false, true] {
                        let again = try await gateway.send(#"{"token": "device-a"}"#, key: key, headers: Self.once)
                        settled = again.json
                        #expect(again.status == 504, "\(again.text)")
                        #expect(again.code == "outcome_unknown")
                        #expect((again.headers["idempotent-replayed"] == "true") == isReplay)
                    }
                    let other = try await gateway.send(#"{"token": "device-b"}"#, key: key, headers: Self.once)
                    #expect(other.status == 422)
                    #expect(other.code == "idempotency_conflict")
                    let record = try await gateway.auditRecord(of: settled)
                    #expect(record?["code"]?.text == "outcome_unknown")
                    #expect(record?["object"]?.text == "settled by a repeat")
                    #expect(try await gateway.audit("&action=message.send").count == 1)
                }
                #expect(try await scene.counts() == ["device-a": 1])
            }
        }

        @Test("After a kill during a v1 list a repeat sends only to recipients that were not started")
        func list() async throws {
            try await self.run { scene in
                let (tokens, body) = Self.list(900)
                let path = "/v1/projects/\(Self.project)/messages:send"
                for (times, action) in [(250, #"{"type": "delay", "ms": 0}"#), (1_000, #"{"type": "hang"}"#)] {
                    try await scene.emulator.add(
                        #"{"times": \#(times), "match": {"path": "\#(path)"}, "action": \#(action)}"#
                    )
                }
                let key = try await scene.shortLife { gateway in
                    let key = try await self.makeTenant(gateway, scene, "v1")
                    async let lost = try? gateway.send(body, key: key, headers: Self.once)
                    // By now all concurrent calls hang.
                    try await scene.waitForCalls(250 + Self.callsAtATime)
                    try await scene.kill(gateway)
                    #expect(await lost == nil)
                    return key
                }
                try await scene.emulator.deleteFaults()
                let before = try await scene.counts()
                #expect(before.count < tokens.count)
                try await scene.life { gateway in
                    let again = try await gateway.send(body, key: key, headers: Self.once)
                    #expect(again.status == 200, "\(again.text)")
                    let results = again.json["results"]?.elements ?? []
                    #expect(results.map { $0["token"]?.text } == tokens)
                    let counts = try await scene.counts()
                    #expect(counts.values.allSatisfy { $0 == 1 })
                    var unknown = 0
                    for (token, result) in zip(tokens, results) {
                        switch result["status"]?.text {
                        case "accepted": #expect(counts[token] == 1, "\(token)")
                        default:
                            unknown += 1
                            #expect(result["code"]?.text == "outcome_unknown", "\(token)")
                        }
                    }
                    #expect(unknown > 0)
                    #expect(unknown <= 2 * Self.startsPerMark)
                    let replay = try await gateway.send(body, key: key, headers: Self.once)
                    #expect(replay.body == again.body)
                    #expect(try await scene.counts() == counts)
                }
            }
        }
    }
}
