import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct DeadlineTests {
    @Test(
        "A deadline that is not a positive integer is refused",
        arguments: ["0", "-1", "abc", "1.5", "1e3", "5s", "5 5", "0x10", "+5", "\u{665}", "99999999999999999999"]
    )
    func malformed(value: String) async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.send(#"{"token":"device"}"#, key: key, headers: ["X-Request-Timeout-Ms": value])
            let problem = try answer.expectProblem(400, "bad_request")
            #expect(problem["detail"] == "X-Request-Timeout-Ms must be a whole number of at least 1")
            #expect(gateway.upstream.calls.isEmpty)
        }
    }

    @Test("A positive integer is accepted as a deadline", arguments: ["1", "20000", "9223372036854775807"])
    func wellFormed(value: String) async throws {
        try await TestGateway.run { gateway, key in
            let answer = await gateway.send(#"{"token":"device"}"#, key: key, headers: ["X-Request-Timeout-Ms": value])
            #expect(answer.status == 200)
        }
    }
}
