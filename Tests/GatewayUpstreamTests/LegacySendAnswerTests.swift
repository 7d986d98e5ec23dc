import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct LegacySendAnswerTests {
    @Test("Every kind of answer has its meaning", arguments: WireReading.all)
    func answers(reading: WireReading) async throws {
        try await FCMClient.run(against: .send(reading.wire)) { sender, upstream in
            let result = await sender.send(try .sample(to: reading.target, endpoint: upstream.endpoint))
            #expect(result == reading.result)
            // What FCM was too busy for is tried three times in all, unless it asked for more time than there is.
            let isRepeated = ["500", "503"].contains(result.upstreamCode) && (result.retryAfter ?? 0) < 60
            #expect(upstream.seen.current.requests.count == (isRepeated ? 3 : 1))
        }
    }

    @Test(
        "An answer without end is given up at its limit",
        arguments: [
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "1000\r\n" + String(repeating: "x", count: 4_096) + "\r\n"
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", String(repeating: "x", count: 4_096)),
            ("HTTP/1.1 200 OK\r\n", "X-More: " + String(repeating: "x", count: 512) + "\r\n"),
        ]
    )
    func flood(head: String, chunk: String) async throws {
        try await FCMClient.run(against: .flood(head: head, chunk: chunk)) { sender, upstream in
            let result = await sender.send(try .sample(endpoint: upstream.endpoint))
            #expect(result == .failed(.upstreamProtocol, "responseTooLarge"))
            try await upstream.seen.wait { $0.closed == 1 }
        }
    }

    @Test("The answer to a list may be as long as its outcomes are", arguments: [1, 1_000])
    func listAnswer(recipients: Int) async throws {
        let results = Array(repeating: #"{"message_id":"0:\#(String(repeating: "1", count: 60))"}"#, count: recipients)
        let padding = String(repeating: " ", count: 150_000)
        let body =
            #"{"multicast_id":1,"success":\#(recipients),"failure":0,"canonical_ids":0,\#(padding)"results":["#
            + results.joined(separator: ",") + "]}"
        let answer =
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body
        try await FCMClient.run(against: .send(answer)) { sender, upstream in
            let tokens = (0..<recipients).map { "token-\($0)" }
            let result = await sender.send(try .sample(to: .tokens(tokens), endpoint: upstream.endpoint))
            guard recipients > 1 else {
                #expect(result.upstreamCode == "responseTooLarge")
                return
            }
            guard case .recipients(let outcomes) = result.answer else {
                Issue.record("The answer was not read: \(result.upstreamCode)")
                return
            }
            #expect(outcomes.count == recipients)
        }
    }

    @Test(
        "Once the request is out, an answer that breaks off leaves the outcome open",
        arguments: [
            RawUpstream.Reply.close, .reset, .sendAndClose("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"multic"),
            .sendAndClose("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{"),
            .sendAndClose("HTTP/1.1 200 O"), .sendAndClose("HTTP/1.1 100 Continue\r\n\r\n"),
        ]
    )
    func brokenOff(reply: RawUpstream.Reply) async throws {
        try await FCMClient.run(against: reply) { sender, upstream in
            let result = await sender.send(try .sample(to: .tokens(["a", "b"]), endpoint: upstream.endpoint))
            #expect(result == .failed(.outcomeUnknown, "connectionClosed"))
            // Nobody knows whether it was delivered, so it is not repeated.
            #expect(upstream.seen.current.requests.count == 1)
        }
    }
}
