import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("Overload")
    struct OverloadTests {
        @Test("While FCM hangs, what is beyond the bound is refused at once; afterwards everything is served")
        func hang() async throws {
            try await Site.with(["GATEWAY_HTTP_MAX_IN_FLIGHT": "4"]) { site in
                try await site.emulator.add(#"{"times": 2, "action": {"type": "hang"}}"#)
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for token in ["a", "b"] { group.addTask { try await site.send(to: token).status } }
                    try await site.waitUntilActive(2)
                    try await site.emulator.waitForCalls(2)
                    let refused = try await site.send(to: "c", priority: "high")
                    #expect(refused.status == 503)
                    #expect(refused.code == "overloaded")
                    #expect(["1", "2", "3"].contains(refused.headers["retry-after"]))
                    #expect(refused.json["action"]?.text == "wait")
                    let legacy = try await site.gateway.ask("POST", "/fcm/send", key: site.key, #"{"to": "c"}"#)
                    #expect(legacy.status == 503)
                    #expect(legacy.headers["content-type"] == "text/plain; charset=UTF-8")
                    #expect(legacy.headers["retry-after"] != nil)
                    #expect(try await site.gateway.admin("GET", "tenants").status == 200)
                    #expect(try await site.shed("tenant_share") == 2)
                    #expect(try await site.emulator.journal().count == 2)
                    try await site.emulator.deleteFaults()
                    for try await status in group { #expect(status == 200) }
                }
                #expect(try await site.send(to: "d").status == 200)
                #expect(try await site.emulator.journal().count == 3)
            }
        }

        @Test("Bodies beyond the bound of buffered bytes are refused before they are read")
        func bufferedBytes() async throws {
            try await Site.with(["GATEWAY_HTTP_MAX_BUFFERED_BYTES": "1048576"]) { site in
                try await site.emulator.add(#"{"times": 1, "action": {"type": "hang"}}"#)
                // Too large to be sent, but read and held before anybody knows: FCM is asked by the first alone.
                let body = #"{"token": "a", "data": {"k": "v"}}"# + String(repeating: " ", count: 600_000)
                try await withThrowingTaskGroup(of: Int.self) { group in
                    group.addTask { try await site.send(body).status }
                    try await site.waitUntilActive(1)
                    try await site.emulator.waitForCalls(1)
                    for (path, isProblem) in [("/v1/tenants/demo/messages", true), ("/fcm/send", false)] {
                        let bytes = "POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 600000\r\n\r\n"
                        let reply = try await RawExchange.reply(port: site.gateway.port, sending: bytes)
                        #expect(reply.status == 503)
                        #expect((reply.headers["content-type"] == "application/problem+json") == isProblem)
                        #expect(["1", "2", "3"].contains(reply.headers["retry-after"]))
                    }
                    #expect(try await site.shed("buffered_bytes") == 2)
                    #expect(try await site.send(to: "small").status == 200)
                    try await site.emulator.deleteFaults()
                    for try await status in group { #expect(status == 200) }
                }
            }
        }
    }
}

extension Site {
    fileprivate func send(to token: String, priority: String = "normal") async throws -> Reply {
        try await self.send(#"{"token": "\#(token)", "priority": "\#(priority)"}"#)
    }

    /// Returns when the data listener answers that many requests.
    fileprivate func waitUntilActive(_ count: Int) async throws {
        let name = #"fcmgw_http_active_requests{listener="data"}"#
        try await wait { try await self.gateway.metric(name) == "\(count)" }
    }

    fileprivate func shed(_ reason: String) async throws -> Int {
        try await self.gateway.metric(#"fcmgw_shed_total{reason="\#(reason)"}"#).flatMap { Int($0) } ?? -1
    }
}
