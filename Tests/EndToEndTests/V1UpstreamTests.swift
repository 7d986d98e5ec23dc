import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("The v1 upstream")
    struct V1UpstreamTests {
        private static let messages = 1_500

        /// Sends messages to devices of their own, 32 at a time, and returns the answers by device.
        private func sendMany(_ site: Site) async throws -> [String: Reply] {
            let next = Observed(0)
            return try await withThrowingTaskGroup(of: [String: Reply].self) { group in
                for _ in 1...32 {
                    group.addTask {
                        var replies: [String: Reply] = [:]
                        while true {
                            let number = next.change { number in
                                defer { number += 1 }
                                return number
                            }
                            guard number < Self.messages else { return replies }
                            let message = #"{"token": "device-\#(number)"}"#
                            var reply = try await site.send(message)
                            // On a slow machine a call may meet one GOAWAY after the other, until it is given up unsent.
                            for _ in 0..<5 where reply.code == "upstream_unavailable" {
                                reply = try await site.send(message)
                            }
                            replies["device-\(number)"] = reply
                        }
                    }
                }
                return try await group.reduce(into: [:]) { $0.merge($1) { $1 } }
            }
        }

        @Test("Servers that say GOAWAY all the time lose no message and double none")
        func goaway() async throws {
            try await Site.with(overTLS: true) { site in
                let account = try await site.emulator.makeServiceAccount(project: "acme-push")
                try await site.gateway.useV1("demo", account, endpoint: site.emulator.address)
                try await site.emulator.set(#"{"goaway_every_ms": 250, "latency_ms": 10}"#)
                let replies = try await self.sendMany(site)
                #expect(replies.count == Self.messages)
                #expect(replies.filter { $0.value.status != 200 }.map { "\($0.key): \($0.value.text)" } == [])
                try await site.emulator.set(#"{"goaway_every_ms": 0}"#)
                let answered = try await site.emulator.journal(limit: 10_000)
                    .filter {
                        $0["path"]?.text == "/v1/projects/acme-push/messages:send"
                            && $0["decision"]?["status"]?.int == 200
                    }
                #expect(answered.count == Self.messages)
                #expect(Set(answered.compactMap { $0["body"]?.text }).count == Self.messages)
                #expect(Set(answered.compactMap { $0["connection"]?.int }).count > 1)
            }
        }
    }
}
