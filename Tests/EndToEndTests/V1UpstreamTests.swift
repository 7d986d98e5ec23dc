import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("The v1 upstream")
    struct V1UpstreamTests {
        private static let project = "acme-push"

        /// Runs a body with a gateway that sends by HTTP v1, over HTTP/2 and TLS, for the tenant `demo`.
        private func run(_ body: (RunningGateway, Emulator, _ key: String, _ account: JSONValue) async throws -> Void)
            async throws
        {
            try await Site.with(overTLS: true) { site in
                let account = try await site.emulator.makeServiceAccount(project: Self.project)
                try await site.gateway.useV1("demo", account, endpoint: site.emulator.address)
                try await body(site.gateway, site.emulator, site.key, account)
            }
        }

        private func calls(_ journal: [JSONValue]) -> [JSONValue] {
            journal.filter { $0["path"]?.text == "/v1/projects/\(Self.project)/messages:send" }
        }

        private func exchanges(_ emulator: Emulator) async throws -> Int {
            try await emulator.journal(limit: 10_000).count { $0["path"]?.text == "/token" }
        }

        /// Sends messages to devices of their own, some at a time, and returns the answers by device; what promises that
        /// nothing was sent is sent again as often as told.
        private func sendMany(
            _ gateway: RunningGateway,
            _ key: String,
            count: Int,
            callers: Int = 32,
            repeats: Int = 0
        ) async throws -> [String: Reply] {
            let next = Observed(0)
            return try await withThrowingTaskGroup(of: [String: Reply].self) { group in
                for _ in 1...callers {
                    group.addTask {
                        var replies: [String: Reply] = [:]
                        while true {
                            let number = next.change { number in
                                defer { number += 1 }
                                return number
                            }
                            guard number < count else { return replies }
                            let device = "device-\(number)"
                            var reply = try await gateway.send(#"{"token": "\#(device)"}"#, key: key)
                            for _ in 0..<repeats where reply.code == "upstream_unavailable" {
                                reply = try await gateway.send(#"{"token": "\#(device)"}"#, key: key)
                            }
                            replies[device] = reply
                        }
                    }
                }
                return try await group.reduce(into: [:]) { $0.merge($1) { $1 } }
            }
        }

        private func failures(_ replies: [String: Reply]) -> [String] {
            replies.filter { $0.value.status != 200 }.map { "\($0.key): \($0.value.text)" }
        }

        @Test("A list shares a few connections by HTTP/2, and is answered in its order")
        func list() async throws {
            try await self.run { gateway, emulator, key, _ in
                try await emulator.set(#"{"max_concurrent_streams": 20, "latency_ms": 5}"#)
                let tokens = (0..<400).map { $0 % 7 == 0 ? "ERROR_UNREGISTERED-\($0)" : "device-\($0)" }
                let list = JSONValue.object(["tokens": .array(tokens.map(JSONValue.string))])
                let reply = try await gateway.send(list.compactText(), key: key)
                #expect(reply.status == 200, "\(reply.text)")
                let results = reply.json["results"]?.elements ?? []
                #expect(results.map { $0["token"]?.text } == tokens)
                #expect(
                    results.map { $0["code"]?.text ?? "accepted" }
                        == tokens.map { $0.hasPrefix("ERROR") ? "unregistered" : "accepted" }
                )
                let calls = self.calls(try await emulator.journal(limit: 1_000))
                #expect(calls.count == tokens.count)
                #expect(calls.allSatisfy { $0["stream"] != nil })
                // A hundred calls at a time, twenty on a connection: one more may have been opened on the way.
                #expect(Set(calls.compactMap { $0["connection"]?.wholeNumber }).count <= 7)
                let exchanges = try await self.exchanges(emulator)
                #expect(exchanges == 1)
            }
        }

        @Test("Servers that say GOAWAY all the time lose no message and double none")
        func goaway() async throws {
            try await self.run { gateway, emulator, key, _ in
                try await emulator.set(#"{"goaway_every_ms": 250, "latency_ms": 10}"#)
                // On a slow machine a call may meet one GOAWAY after the other, until it is given up unsent.
                let replies = try await self.sendMany(gateway, key, count: 1_500, repeats: 5)
                #expect(replies.count == 1_500)
                #expect(self.failures(replies) == [])
                try await emulator.set(#"{"goaway_every_ms": 0}"#)
                let calls = self.calls(try await emulator.journal(limit: 10_000))
                let answered = calls.filter { $0.at("decision", "status")?.wholeNumber == 200 }
                #expect(answered.count == 1_500)
                #expect(Set(answered.compactMap { $0["body"]?.text }).count == 1_500)
                #expect(Set(answered.compactMap { $0["connection"]?.wholeNumber }).count > 1)
            }
        }

        @Test("A tenant moves from one protocol to the other and back under load, and no send fails")
        func switching() async throws {
            try await self.run { gateway, emulator, key, _ in
                let isDone = Observed(false)
                let switches = try await withThrowingTaskGroup(of: Int.self) { group in
                    group.addTask {
                        var switches = 0
                        while !isDone.current {
                            switches += 1
                            let upstream = switches.isMultiple(of: 2) ? "v1" : "legacy"
                            let reply = try await gateway.set("demo", upstream: upstream)
                            #expect(reply.status == 200)
                        }
                        return switches
                    }
                    let replies = try await self.sendMany(gateway, key, count: 1_000, callers: 8)
                    isDone.change { $0 = true }
                    #expect(replies.count == 1_000)
                    #expect(self.failures(replies) == [])
                    return try await group.next() ?? 0
                }
                #expect(switches > 2)
                let journal = try await emulator.journal(limit: 10_000)
                let byV1 = self.calls(journal).count
                let byLegacy = journal.count { $0["path"]?.text == "/fcm/send" }
                #expect(byV1 > 0)
                #expect(byLegacy > 0)
                #expect(byV1 + byLegacy == 1_000)
            }
        }

        @Test("With a token in hand, an OAuth outage fails no send; a revoked one costs one exchange")
        func tokens() async throws {
            try await self.run { gateway, emulator, key, _ in
                #expect(try await gateway.send(#"{"token": "first"}"#, key: key).status == 200)
                try await emulator.add(#"{"match": {"path": "/token"}, "action": {"type": "status", "status": 503}}"#)
                let replies = try await self.sendMany(gateway, key, count: 200)
                #expect(self.failures(replies) == [])
                let exchangesBefore = try await self.exchanges(emulator)
                #expect(exchangesBefore == 1)
                try await emulator.deleteFaults()

                try await emulator.revokeAccessTokens()
                let after = try await self.sendMany(gateway, key, count: 200)
                #expect(self.failures(after) == [])
                let exchangesAfter = try await self.exchanges(emulator)
                #expect(exchangesAfter == 2)
            }
        }

        @Test("A refused key fails its own tenant's sends alone, and FCM is not asked with it again and again")
        func refusedKey() async throws {
            try await self.run { gateway, emulator, key, account in
                let other = try await gateway.makeTenant("other", serverKey: "server-key", endpoint: emulator.address)
                try await gateway.useV1(
                    "other",
                    try await emulator.makeServiceAccount(project: "other-push"),
                    endpoint: emulator.address
                )
                #expect(try await gateway.send(#"{"token": "a"}"#, key: key).status == 200)
                #expect(try await gateway.send(#"{"token": "a"}"#, tenant: "other", key: other).status == 200)
                try await emulator.forget(account)
                try await emulator.revokeAccessTokens()
                let before = try await self.exchanges(emulator)
                for number in 1...40 {
                    let reply = try await gateway.send(#"{"token": "b\#(number)"}"#, key: key)
                    #expect(reply.status == 502)
                    #expect(reply.code == "upstream_credentials")
                    let others = try await gateway.send(#"{"token": "b\#(number)"}"#, tenant: "other", key: other)
                    #expect(others.status == 200)
                }
                // One for the other tenant; the refused key rests a while after each try.
                let exchanges = try await self.exchanges(emulator) - before
                #expect(exchanges < 20)
                let check = try await gateway.admin("POST", "tenants/demo/credentials/check")
                let findings = check.json["checks"]?.elements ?? []
                #expect(findings.map { $0["finding"]?.text } == ["valid", "key_refused"])
            }
        }
    }
}
