import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("Retired tokens")
    struct RetiredTokenTests {
        @Test("After kill -9 an unregistered token is refused without a call, and a replaced one is in the feed")
        func kill() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                var firstCursor = ""
                try await DevGateway.with(data) { dev in
                    let list = #"{"tokens": ["ERROR_NotRegistered", "CANONICAL_new", "a"]}"#
                    #expect(try await dev.send(list).json["accepted"]?.int == 2)
                    firstCursor = try await self.feed(dev, until: 1)["resume_cursor"]?.text ?? ""
                    try await dev.gateway.kill()
                }
                try await DevGateway.with(data) { dev in
                    let calls = try await dev.emulator.journal().count
                    let refused = try await dev.send(#"{"token": "ERROR_NotRegistered"}"#)
                    #expect(refused.status == 410)
                    #expect(refused.code == "unregistered")
                    #expect(refused.headers["ratelimit"] != nil)
                    #expect(try await dev.emulator.journal().count == calls)
                    let record = try #require(await dev.gateway.auditRecord(of: refused.json))
                    #expect(record["object"]?.text == "retired: 1")
                    #expect(record["upstream_code"] == nil)
                    let metrics = try await dev.gateway.metrics()
                    #expect(metrics.contains("fcmgw_retired_token_refusals_total 1\n"))
                    #expect(metrics.contains(#"fcmgw_retired_tokens{state="unregistered"} 1"#))

                    let feed = try await self.feed(dev, until: 1)
                    let entry = try #require(feed["retired_tokens"]?.elements.first)
                    #expect(entry["token"]?.text == "CANONICAL_new")
                    #expect(entry["reason"]?.text == "replaced")
                    #expect(entry["replacement_token"]?.text == "new")
                    #expect(try await dev.send(#"{"token": "CANONICAL_other"}"#).status == 200)
                    _ = try await self.feed(dev, until: 2)
                    let news = try await self.feed(dev, until: 1, query: "?cursor=\(firstCursor)")
                    #expect(news["retired_tokens"]?.elements.map { $0["token"]?.text } == ["CANONICAL_other"])
                    try await dev.gateway.stopInOrder()
                }
                #expect(try await Program.auditVerify(data).end == .code(0))
            }
        }

        /// Polls the feed until it has `count` entries.
        private func feed(_ dev: DevGateway, until count: Int, query: String = "") async throws -> JSON {
            try await eventually {
                let path = "/v1/tenants/demo/retired-tokens\(query)"
                let reply = try await dev.gateway.ask("GET", path, key: dev.key)
                #expect(reply.status == 200)
                return reply.json["retired_tokens"]?.elements.count == count ? reply.json : nil
            }
        }
    }
}
