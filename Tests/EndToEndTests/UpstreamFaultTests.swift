import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Faults of FCM")
    struct UpstreamFaultTests {
        @Test("Every fault has its answer, reaches FCM no more often than it may, and leaves the gateway as it was")
        func faults() async throws {
            try await DevGateway.with { dev in
                for fault in UpstreamFault.all {
                    try await self.check(fault, dev)
                }
                #expect(try await Program.auditVerify(dev.data).end == .code(0))
            }
        }

        private func check(_ fault: UpstreamFault, _ dev: DevGateway) async throws {
            let callsBefore = try await dev.emulator.journal().count
            if let action = fault.action {
                try await dev.emulator.add(#"{"times": \#(fault.maxCalls), "action": \#(action)}"#)
            }
            let headers = fault.timeoutMilliseconds.map { ["X-Request-Timeout-Ms": String($0)] } ?? [:]
            let reply = try await dev.send(#"{"token": "\#(fault.token)", "data": {"a": "b"}}"#, headers: headers)
            let problem = reply.json
            #expect(reply.status == fault.status, "\(fault.name): \(reply.text)")
            #expect(reply.code == fault.code, "\(fault.name): \(reply.text)")
            #expect(reply.headers["content-type"] == "application/problem+json", "\(fault.name)")
            #expect(reply.headers["retry-after"] == fault.retryAfter, "\(fault.name)")
            #expect(problem["retry_after"]?.wholeNumber.map(String.init) == fault.retryAfter, "\(fault.name)")
            #expect(problem["status"]?.wholeNumber == fault.status, "\(fault.name)")
            #expect(problem["type"]?.text == "/problems/\(fault.code)", "\(fault.name)")
            #expect(problem["action"]?.text == fault.callerAction, "\(fault.name)")
            let isRetryable = fault.callerAction == "wait"
            #expect(problem["retryable"] == .bool(isRetryable), "\(fault.name)")
            #expect(reply.headers["ratelimit"]?.hasPrefix(#""tenant";r="#) == true, "\(fault.name)")
            try await dev.emulator.waitForCalls(callsBefore + 1)
            let calls = try await dev.emulator.journal().count - callsBefore
            #expect(calls <= fault.maxCalls, "\(fault.name)")

            let record = try await dev.gateway.auditRecord(of: problem)
            #expect(record?["code"]?.text == fault.code, "\(fault.name)")
            #expect(record?["outcome"]?.text == "rejected", "\(fault.name)")

            try await dev.emulator.deleteFaults()
            let next = try await dev.send(#"{"token": "device", "data": {"a": "b"}}"#)
            #expect(next.status == 200, "after \(fault.name): \(next.text)")
        }

        @Test("A server that refuses connections is unavailable")
        func refusedConnection() async throws {
            try await DevGateway.with { dev in
                try await ClosedPort.with { port in
                    let endpoint = "http://127.0.0.1:\(port)"
                    let key = try await dev.gateway.makeTenant("lost", serverKey: "any", endpoint: endpoint)
                    let reply = try await dev.gateway.send(#"{"token": "a"}"#, tenant: "lost", key: key)
                    #expect(reply.status == 503)
                    #expect(reply.code == "upstream_unavailable")
                    #expect(reply.headers["retry-after"] == "5")
                    #expect(reply.json["retryable"] == .bool(true))
                    let several = try await dev.gateway.send(#"{"tokens": ["a", "b"]}"#, tenant: "lost", key: key)
                    #expect(several.status == 503)
                    #expect(several.code == "upstream_unavailable")
                }
            }
        }

        @Test("Several recipients have their results in the request's order, repeated ones too, replaced ones as such")
        func multicast() async throws {
            try await DevGateway.with { dev in
                let one = try await dev.send(#"{"token": "CANONICAL_the-new-one"}"#)
                #expect(one.status == 200)
                #expect(one.json["status"]?.text == "accepted")
                #expect(one.json["replacement_token"]?.text == "the-new-one")

                let tokens = [
                    "a", "ERROR_NotRegistered", "CANONICAL_b2", "ERROR_Unavailable", "a", "ERROR_NoSuchError", "c",
                ]
                let list = JSONValue.object(["tokens": .array(tokens.map(JSONValue.string))])
                let reply = try await dev.send(list.compactText())
                #expect(reply.status == 200)
                #expect(reply.json["accepted"]?.wholeNumber == 4)
                #expect(reply.json["rejected"]?.wholeNumber == 3)
                let results = reply.json["results"]?.elements ?? []
                #expect(results.map { $0["token"]?.text } == tokens)
                #expect(
                    results.map { $0["code"]?.text ?? $0["status"]?.text } == [
                        "accepted", "unregistered", "accepted", "upstream_unavailable", "accepted",
                        "upstream_protocol", "accepted",
                    ]
                )
                #expect(results.map { $0["replacement_token"]?.text } == [nil, nil, "b2", nil, nil, nil, nil])
                #expect(Set(results.compactMap { $0["message_id"]?.text }).count == 4)
                let record = try #require(await dev.gateway.auditRecord(of: reply.json))
                #expect(record["outcome"]?.text == "partial")
                #expect(record["recipients"]?.wholeNumber == 7)
                #expect(record["accepted"]?.wholeNumber == 4)

                // One cause for everybody is one problem, not a list.
                try await dev.emulator.add(#"{"action": {"type": "status", "status": 401}}"#)
                let problem = try await dev.send(#"{"tokens": ["d", "e", "f"]}"#)
                #expect(problem.status == 502)
                #expect(problem.code == "upstream_credentials")
                #expect(problem.json["results"] == nil)
            }
        }
    }
}
