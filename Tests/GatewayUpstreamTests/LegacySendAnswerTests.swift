import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct LegacySendAnswerTests {
    /// Responses, the target of the call, the expected result and the expected number of attempts.
    private static let readings: [(wire: String, target: Target, result: SendResult, attempts: Int)] = [
        (
            WireAnswer.text(
                "200 OK",
                """
                {"multicast_id":1,"success":2,"failure":2,"canonical_ids":1,"results":[{"message_id":"0:1"},
                {"error":"NotRegistered"},{"message_id":"0:2","registration_id":"new"},{"error":"Unavailable"}]}
                """,
                "Retry-After: 30"
            ),
            .tokens(["a", "b", "c", "d"]),
            SendResult(
                [
                    .accepted(Acceptance(messageID: "0:1")), .rejected(.unregistered),
                    .accepted(Acceptance(messageID: "0:2", replacementToken: "new")), .rejected(.upstreamUnavailable),
                ],
                retryAfter: 30,
                upstreamCode: "NotRegistered"
            ), 1
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "10\r\n{\"multicast_id\":\r\n2f\r\n1,\"results\":[{\"message_id\":\"0:1\"}],\"success\":1}\r\n0\r\n\r\n",
            .token("a"), .accepted("0:1"), 1
        ),
        (WireAnswer.text("200 OK", "id=0:9", "Content-Type: text/plain"), .token("a"), .accepted("0:9"), 1),
        // A redirect is not followed.
        (
            WireAnswer.text("302 Found", "", "Location: http://127.0.0.1:1/"), .token("a"),
            .failed(.upstreamProtocol, "302"), 1
        ),
        (WireAnswer.text("500 Internal Server Error", "oops"), .token("a"), .failed(.upstreamInternal, "500"), 3),
        (WireAnswer.text("502 Bad Gateway", ""), .token("a"), .failed(.upstreamUnavailable, "502"), 1),
        (WireAnswer.text("503 Service Unavailable", ""), .token("a"), .failed(.upstreamUnavailable, "503"), 3),
        // The manual clock starts 90 seconds before this.
        (
            WireAnswer.text("503 Service Unavailable", "", "Retry-After: Sun, 01 Mar 2026 12:01:30 GMT"), .token("a"),
            SendResult(refused: .upstreamUnavailable, retryAfter: 90, upstreamCode: "503"), 1
        ),
        (
            WireAnswer.text("429 Too Many Requests", "", "Retry-After: 60"), .token("a"),
            SendResult(refused: .upstreamUnavailable, retryAfter: 60, upstreamCode: "429"), 1
        ),
        // Responses that the HTTP client refuses.
        ("SSH-2.0-OpenSSH_9.9\r\n\r\n", .token("a"), .failed(.upstreamProtocol, "invalidResponse"), 1),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n{", .token("a"),
            .failed(.upstreamProtocol, "responseTooLarge"), 1
        ),
    ]

    @Test("Each legacy response maps to a result and a number of attempts", arguments: Self.readings)
    func answers(wire: String, target: Target, result: SendResult, attempts: Int) async throws {
        try await FCMClient.run(against: .send(wire)) { sender, upstream async throws in
            #expect(try await sender.send(.sample(to: target, endpoint: upstream.endpoint)) == result)
            #expect(upstream.seen.current.requests.count == attempts)
        }
    }

    @Test(
        "A response without end fails at the size limit, and its connection is closed",
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

    @Test("The size limit of a response grows with the number of recipients", arguments: [1, 1_000])
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
        "A response that breaks off leaves the outcome unknown, and the request isn't repeated",
        arguments: [
            RawServer.Reply.close, .reset, .sendAndClose("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"multic"),
            .sendAndClose("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{"),
            .sendAndClose("HTTP/1.1 200 O"), .sendAndClose("HTTP/1.1 100 Continue\r\n\r\n"),
        ]
    )
    func brokenOff(reply: RawServer.Reply) async throws {
        try await FCMClient.run(against: reply) { sender, upstream in
            let result = await sender.send(try .sample(to: .tokens(["a", "b"]), endpoint: upstream.endpoint))
            #expect(result == .failed(.outcomeUnknown, "connectionClosed"))
            #expect(upstream.seen.current.requests.count == 1)
        }
    }
}
