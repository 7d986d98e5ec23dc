import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Rate limits")
    struct RateLimitTests {
        private static let callers = 10

        @Test(
            "Ten callers of one device are admitted within burst + rate × time",
            arguments: [(rate: 20, burst: 15), (rate: 5, burst: 1), (rate: 10, burst: 40)]
        )
        func concurrentCallers(rate: Int, burst: Int) async throws {
            try await DevGateway.with { dev in
                let policy = #"{"device": [{"rate": \#(rate), "per_s": 1, "burst": \#(burst)}]}"#
                #expect(try await dev.gateway.admin("PUT", "tenants/demo/limits", policy).status == 200)
                // Measured around everything, so that the bound errs on the side of the gateway alone.
                let start = ContinuousClock.now
                let replies = try await self.replies(dev, perCaller: 30)
                let seconds = (ContinuousClock.now - start) / .seconds(1)

                let admitted = replies.count { $0.status == 200 }
                #expect(Double(admitted) <= Double(burst) + Double(rate) * seconds)
                #expect(admitted >= burst)
                let refused = replies.filter { $0.status != 200 }
                #expect(!refused.isEmpty || Double(burst) + Double(rate) * seconds >= Double(replies.count))
                for reply in refused {
                    #expect(reply.status == 429)
                    #expect(reply.code == "device_rate_exceeded")
                    #expect(reply.json["limited_by"]?.text == "gateway")
                    #expect((reply.headers["retry-after"].flatMap { Int($0) } ?? 0) >= 1)
                }
                // What was refused went no further, and what was admitted went once.
                #expect(try await dev.emulator.journal().count == admitted)
            }
        }

        private func replies(_ dev: DevGateway, perCaller: Int) async throws -> [Reply] {
            try await withThrowingTaskGroup(of: [Reply].self) { group in
                for _ in 1...Self.callers {
                    group.addTask {
                        var replies: [Reply] = []
                        for _ in 1...perCaller { replies.append(try await dev.send(#"{"token": "one-device"}"#)) }
                        return replies
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
        }

        @Test("After a restart every quota is whole, and no file is left of what was used up")
        func restart() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                func send(_ dev: DevGateway) async throws -> Int { try await dev.send(#"{"token": "used"}"#).status }
                try await DevGateway.with(data) { dev in
                    // One an hour: nothing comes back during the test.
                    let policy = #"{"device": [{"rate": 1, "per_s": 3600, "burst": 1}]}"#
                    #expect(try await dev.gateway.admin("PUT", "tenants/demo/limits", policy).status == 200)
                    #expect(try await send(dev) == 200)
                    #expect(try await send(dev) == 429)
                    try await dev.gateway.stopInOrder()
                }
                let files = try FileManager.default.contentsOfDirectory(atPath: data)
                #expect(!files.contains { $0.hasSuffix(".limits") })
                try await DevGateway.with(data) { dev in
                    let again = [try await send(dev), try await send(dev)]
                    #expect(again == [200, 429])
                }
            }
        }

        @Test("Recipients over their limit don't keep the others from theirs")
        func partialAdmission() async throws {
            try await DevGateway.with { dev in
                // Two an hour: nothing comes back during the test.
                let policy = #"{"device": [{"rate": 1, "per_s": 3600, "burst": 2}]}"#
                #expect(try await dev.gateway.admin("PUT", "tenants/demo/limits", policy).status == 200)
                for _ in 1...2 { #expect(try await dev.send(#"{"token": "busy"}"#).status == 200) }

                let reply = try await dev.send(#"{"tokens": ["a", "busy", "b", "a", "a"]}"#)
                #expect(reply.status == 200)
                #expect(reply.json["accepted"]?.wholeNumber == 3)
                let results = reply.json["results"]?.elements ?? []
                #expect(results.map { $0["token"]?.text } == ["a", "busy", "b", "a", "a"])
                #expect(
                    results.map { $0["code"]?.text ?? $0["status"]?.text } == [
                        "accepted", "device_rate_exceeded", "accepted", "accepted", "device_rate_exceeded",
                    ]
                )
                for refused in results where refused["status"]?.text == "rejected" {
                    #expect((refused["retry_after"]?.wholeNumber ?? 0) > 1_000)
                    #expect(refused["limited_by"]?.text == "gateway")
                }
                let call = try #require(await dev.emulator.journal().first)
                #expect(call["body"]?.text == #"{"registration_ids":["a","b","a"]}"#)

                let callsBefore = try await dev.emulator.journal().count
                let all = try await dev.send(#"{"tokens": ["busy", "a"]}"#)
                #expect(all.status == 429)
                #expect(all.code == "device_rate_exceeded")
                #expect(try await dev.emulator.journal().count == callsBefore)
            }
        }
    }
}
