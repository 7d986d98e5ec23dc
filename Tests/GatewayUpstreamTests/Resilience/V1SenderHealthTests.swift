import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct V1SenderHealthTests {
    @Test("A server in trouble is soon left alone in the midst of a list, and each token may be repeated")
    func trouble() async throws {
        try await V1Fixture.run(fanOut: 4) { fixture in
            _ = try await fixture.send()
            fixture.emulator.addFault(
                Fault(
                    path: "/v1/projects/\(V1Fixture.projectID)/messages:send",
                    times: 1_000,
                    action: .status(503, body: nil, headers: [])
                )
            )
            let result = try await fixture.send(to: .tokens((0..<300).map { "device-\($0)" }))
            #expect(result.answer == .failed(.upstreamUnavailable))
            // Five in a row open the breaker; three more may have been under way. A busy server is not asked again.
            #expect((5...8).contains(fixture.messages.count - 1))
            fixture.emulator.deleteFaults()
            // The server is well again, but nobody asks it before its rest is over.
            let later = try await fixture.send()
            #expect(later.upstreamCode == "breaker_open")
            #expect((1...30).contains(later.retryAfter ?? 0))
        }
    }

    @Test("A project's quota that is used up pauses the project, a device's own does not")
    func quota() async throws {
        try await V1Fixture.run { fixture in
            for _ in 1...6 {
                let result = try await fixture.send(to: .token("ERROR_QUOTA_EXCEEDED"))
                guard case .recipients(let outcomes) = result.answer, case .rejected(let rejection)? = outcomes.first
                else {
                    Issue.record("\(result)")
                    return
                }
                #expect(rejection.code == .deviceRateExceeded)
            }
            #expect(fixture.messages.count == 6)
            let other = try await fixture.send()
            #expect(other.upstreamCode == "200")
        }
    }
}
