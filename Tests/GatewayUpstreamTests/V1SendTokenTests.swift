import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

@Suite("HTTP v1 and its access tokens", .timeLimit(.minutes(10)))
struct V1SendTokenTests {
    private static let tokenOutage = Fault(path: "/token", times: 1_000, action: .page(503))

    @Test("While the token endpoint is down, the cached token is used until it expires")
    func outage() async throws {
        try await V1Fixture.run { fixture async throws in
            #expect(try await fixture.send().isAccepted)
            fixture.emulator.addFault(Self.tokenOutage)
            for _ in 0..<3 {
                fixture.clock.advance(by: .seconds(1_190))
                #expect(try await fixture.send().isAccepted)
            }
            fixture.clock.advance(by: .seconds(120))
            #expect(try await fixture.send() == .failed(.upstreamUnavailable, "token_http_503"))
            let asked = fixture.tokenRequests.count
            // The failure is remembered, so the endpoint isn't asked again yet.
            for _ in 0..<5 {
                #expect(try await fixture.send().refusal?.code == .upstreamUnavailable)
            }
            #expect(fixture.tokenRequests.count == asked)
            fixture.emulator.deleteFaults()
            fixture.clock.advance(by: .seconds(61))
            #expect(try await fixture.send().isAccepted)
            #expect(fixture.tokenRequests.count == asked + 1)
        }
    }

    @Test("A token is renewed before it expires, and sends don't wait for the renewal")
    func renewal() async throws {
        try await V1Fixture.run { fixture in
            _ = try await fixture.send()
            let entries = fixture.emulator.journalEntries()
            fixture.emulator.addFault(Fault(path: "/token", action: .hang))
            fixture.clock.advance(by: .seconds(3_000))
            #expect(try await fixture.send().isAccepted)
            for await entry in entries where entry.path == "/token" { break }
            #expect(try await fixture.send().isAccepted)
            fixture.emulator.deleteFaults()
            // The first token has expired, so this send uses the second.
            fixture.clock.advance(by: .seconds(1_000))
            #expect(try await fixture.send().isAccepted)
            #expect(fixture.tokenRequests.filter { $0.decision != nil }.count == 2)
        }
    }

    @Test("After a second refusal in a row, no further token is requested")
    func refusedTwice() async throws {
        try await V1Fixture.run { fixture async throws in
            let refusal = #"{"error":{"code":401,"message":"m","status":"UNAUTHENTICATED"}}"#
            let path = "/v1/projects/demo-project/messages:send"
            fixture.emulator.addFault(Fault(path: path, times: 9, action: .status(401, body: refusal, headers: [])))
            for _ in 0..<3 {
                #expect(try await fixture.send() == .failed(.upstreamCredentials, "401"))
            }
            #expect(fixture.tokenRequests.count == 2)
            #expect(fixture.messages.count == 4)
        }
    }

    @Test("A refused service account key is a credential error, and isn't tried again at once")
    func refusedKey() async throws {
        try await V1Fixture.run { fixture async throws in
            fixture.emulator.removeServiceAccount(clientEmail: fixture.file.clientEmail)
            for target in [Target.token("device"), .tokens(["a", "b"])] {
                #expect(try await fixture.send(to: target) == .failed(.upstreamCredentials, "invalid_grant"))
            }
            #expect(fixture.tokenRequests.count == 1)
            #expect(fixture.messages.isEmpty)
        }
    }

    @Test("An account with a forbidden token endpoint sends no requests")
    func refusedHost() async throws {
        try await V1Fixture.run(allowsTokenHost: false) { fixture async throws in
            #expect(try await fixture.send() == .failed(.upstreamCredentials, "token_host_refused"))
            #expect(fixture.emulator.journal().isEmpty)
        }
    }

    @Test("A caller waits for a token at most until its deadline")
    func deadline() async throws {
        try await V1Fixture.run { fixture in
            fixture.emulator.addFault(Fault(path: "/token", action: .hang))
            let result = try await fixture.send(timeLeft: .milliseconds(200))
            #expect(result == .failed(.upstreamUnavailable, "token_timeout"))
            #expect(fixture.messages.isEmpty)
            fixture.emulator.deleteFaults()
            // The exchange continued without its first caller.
            #expect(try await fixture.send().isAccepted)
            #expect(Set(fixture.tokenRequests.map(\.id)).count == 1)
        }
    }

    @Test("A replaced credential is used from the next send on")
    func replaced() async throws {
        try await V1Fixture.run { fixture in
            _ = try await fixture.send()
            let other = try await fixture.emulator.makeServiceAccount(projectID: "other-project")
            let credential = try fixture.serviceAccount(Array(other.json.utf8))
            #expect(try await fixture.send(credential: credential).isAccepted)
            #expect(fixture.messages.last?.path == "/v1/projects/other-project/messages:send")
            #expect(fixture.tokenRequests.count == 2)
        }
    }
}
