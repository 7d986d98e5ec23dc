import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Overload")
    struct OverloadTests {
        /// A gateway with few places.
        private struct Bench {
            let site: Site

            var gateway: RunningGateway { self.site.gateway }
            var emulator: Emulator { self.site.emulator }

            static func run(_ settings: [String: String], _ body: (Bench) async throws -> Void) async throws {
                try await Site.with(settings) { try await body(Bench(site: $0)) }
            }

            func send(_ token: String, priority: String = "normal") async throws -> Reply {
                try await self.site.send(#"{"token": "\#(token)", "priority": "\#(priority)"}"#)
            }

            /// Returns when the data listener answers that many requests.
            func waitUntilActive(_ count: Int) async throws {
                let name = #"fcmgw_http_active_requests{listener="data"}"#
                try await wait { try await self.gateway.metric(name) == "\(count)" }
            }

            func shed(_ reason: String) async throws -> Int {
                try await self.gateway.metric(#"fcmgw_shed_total{reason="\#(reason)"}"#).flatMap { Int($0) } ?? -1
            }
        }

        @Test("While FCM hangs, what is beyond the bound is refused at once; afterwards everything is served")
        func hang() async throws {
            try await Bench.run(["GATEWAY_HTTP_MAX_IN_FLIGHT": "4"]) { bench in
                try await bench.emulator.add(#"{"times": 2, "action": {"type": "hang"}}"#)
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for token in ["a", "b"] { group.addTask { try await bench.send(token).status } }
                    try await bench.waitUntilActive(2)
                    try await bench.emulator.waitForCalls(2)
                    let refused = try await bench.send("c", priority: "high")
                    #expect(refused.status == 503)
                    #expect(refused.code == "overloaded")
                    #expect(["1", "2", "3"].contains(refused.headers["retry-after"]))
                    #expect(refused.json["action"]?.text == "wait")
                    let legacy = try await bench.gateway.ask("POST", "/fcm/send", key: bench.site.key, #"{"to": "c"}"#)
                    #expect(legacy.status == 503)
                    #expect(legacy.headers["content-type"] == "text/plain; charset=UTF-8")
                    #expect(legacy.headers["retry-after"] != nil)
                    #expect(try await bench.gateway.admin("GET", "tenants").status == 200)
                    #expect(try await bench.shed("tenant_share") == 2)
                    #expect(try await bench.emulator.journal().count == 2)
                    try await bench.emulator.deleteFaults()
                    for try await status in group { #expect(status == 200) }
                }
                #expect(try await bench.send("d").status == 200)
                #expect(try await bench.emulator.journal().count == 3)
            }
        }

        @Test("A slow FCM serves as many at once as there are places, and no more ever reach it")
        func delay() async throws {
            // One loop: several that ask at the same moment may be refused for other reasons.
            try await Bench.run(["GATEWAY_HTTP_MAX_IN_FLIGHT": "8", "GATEWAY_EVENT_LOOPS": "1"]) { bench in
                try await bench.emulator.add(#"{"times": 1000, "action": {"type": "delay", "ms": 50}}"#)
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for number in 0..<40 { group.addTask { try await bench.send("device-\(number)").status } }
                    return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
                }
                let served = statuses[200, default: 0]
                #expect(served >= 4)
                #expect(served + statuses[503, default: 0] == 40)
                #expect(try await bench.emulator.journal().count == served)
                #expect(try await bench.shed("tenant_share") == 40 - served)
                try await bench.waitUntilActive(0)
                #expect(try await bench.send("last").status == 200)
            }
        }

        @Test("A client that goes away gives its place back")
        func disconnect() async throws {
            try await Bench.run(["GATEWAY_HTTP_MAX_IN_FLIGHT": "2"]) { bench in
                try await bench.emulator.add(#"{"times": 1, "action": {"type": "hang"}}"#)
                let sending = Task { try await bench.send("a") }
                try await bench.waitUntilActive(1)
                try await bench.emulator.waitForCalls(1)
                #expect(try await bench.send("b").status == 503)
                sending.cancel()
                _ = try? await sending.value
                try await bench.waitUntilActive(0)
                #expect(try await bench.send("c").status == 200)
            }
        }

        @Test("Bodies beyond the bound of buffered bytes are refused before they are read")
        func bufferedBytes() async throws {
            try await Bench.run(["GATEWAY_HTTP_MAX_BUFFERED_BYTES": "1048576"]) { bench in
                try await bench.emulator.add(#"{"times": 1, "action": {"type": "hang"}}"#)
                // Too large to be sent, but read and held before anybody knows: FCM is asked by the first alone.
                let body = #"{"token": "a", "data": {"k": "v"}}"# + String(repeating: " ", count: 600_000)
                try await withThrowingTaskGroup(of: Int.self) { group in
                    group.addTask { try await bench.site.send(body).status }
                    try await bench.waitUntilActive(1)
                    try await bench.emulator.waitForCalls(1)
                    for (path, isProblem) in [("/v1/tenants/demo/messages", true), ("/fcm/send", false)] {
                        let bytes = "POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 600000\r\n\r\n"
                        let reply = try await RawExchange.reply(port: bench.gateway.port, sending: bytes)
                        #expect(reply.status == 503)
                        #expect((reply.headers["content-type"] == "application/problem+json") == isProblem)
                        #expect(["1", "2", "3"].contains(reply.headers["retry-after"]))
                    }
                    #expect(try await bench.shed("buffered_bytes") == 2)
                    #expect(try await bench.send("small").status == 200)
                    try await bench.emulator.deleteFaults()
                    for try await status in group { #expect(status == 200) }
                }
            }
        }
    }
}
