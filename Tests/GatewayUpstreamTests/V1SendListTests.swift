import EventLoopHTTP
import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import NIOPosix
import Testing

@testable import GatewayUpstream

@Suite("HTTP v1 and lists", .timeLimit(.minutes(10)))
struct V1SendListTests {
    @Test("Outcomes are in the order of the recipients", arguments: [1, 7, 100])
    func order(fanOut: Int) async throws {
        try await V1Fixture.run(fanOut: fanOut) { fixture in
            let tokens = (0..<250).map { $0 % 3 == 0 ? "ERROR_UNREGISTERED-\($0)" : "device-\($0)" }
            // Runs on one event loop, as a request does: each loop has its own connections.
            let executor = EventLoopTaskExecutor(eventLoop: MultiThreadedEventLoopGroup.singleton.next())
            let result = try await withTaskExecutorPreference(executor) {
                try await fixture.send(to: .tokens(tokens))
            }
            #expect(result.codes == tokens.indices.map { $0 % 3 == 0 ? .unregistered : nil })
            guard case .recipients(let outcomes) = result.answer else { return }
            for (token, outcome) in zip(tokens, outcomes) {
                guard case .accepted(let acceptance) = outcome else { continue }
                #expect(fixture.emulator.deliveries(token: token).map(\.messageID) == [acceptance.messageID])
            }
            #expect(fixture.messages.count == 250)
            #expect(fixture.tokenRequests.count == 1)
            // With HTTP/1.1, each call in flight has its own connection.
            #expect(Set(fixture.messages.compactMap(\.connection)).count <= fanOut)
        }
    }

    @Test("A list of one installation is sent with its fid")
    func installations() async throws {
        try await V1Fixture.run { fixture async throws in
            #expect(try await fixture.send(to: .installations(["f"])).codes == [nil])
            #expect(fixture.messages.map(\.body) == [#"{"message":{"fid":"f"}}"#])
        }
    }

    @Test("At the deadline, calls in flight have an unknown outcome, and calls not started are unavailable")
    func deadline() async throws {
        try await V1Fixture.run(fanOut: 2) { fixture in
            _ = try await fixture.send()
            for token in ["a", "b"] { fixture.emulator.addFault(Fault(token: token, action: .hang)) }
            let tokens = ["a", "b", "c", "d"]
            let result = try await fixture.send(to: .tokens(tokens), timeLeft: .seconds(3))
            // The machine's speed decides which calls start before the deadline.
            let begun = tokens.filter { token in fixture.messages.contains { $0.body.contains("\"\(token)\"") } }
            #expect(Set(begun).isSubset(of: ["a", "b"]))
            let codes = result.codes
            guard !codes.isEmpty else {
                #expect(begun.isEmpty)
                #expect(result.refusal?.code == .upstreamUnavailable)
                return
            }
            // The server need not have read a request that was sent.
            for (token, code) in zip(tokens, codes) {
                #expect(code == .outcomeUnknown || (code == .upstreamUnavailable && !begun.contains(token)))
            }
            #expect(codes.suffix(2) == [.upstreamUnavailable, .upstreamUnavailable])
            fixture.emulator.deleteFaults()
        }
    }

    @Test("A refusal that applies to all recipients stops the list after a few calls")
    func verdict() async throws {
        try await V1Fixture.run(fanOut: 4) { fixture in
            let tokens = (0..<1_000).map { "device-\($0)" }
            let result = try await fixture.send(to: .tokens(tokens), projectID: "nobodys")
            #expect(result == .failed(.upstreamCredentials, "404"))
            #expect((1...4).contains(fixture.messages.count))
        }
    }

    @Test("A list with a revoked access token costs one exchange for all its calls")
    func revoked() async throws {
        try await V1Fixture.run(fanOut: 20) { fixture in
            _ = try await fixture.send()
            fixture.emulator.revokeAccessTokens()
            let result = try await fixture.send(to: .tokens((0..<200).map { "device-\($0)" }))
            #expect(result.codes == Array(repeating: nil, count: 200))
            #expect(fixture.tokenRequests.count == 2)
            #expect((202...221).contains(fixture.messages.count))
        }
    }

    @Test("The failure of one recipient doesn't affect the others")
    func mixed() async throws {
        try await V1Fixture.run { fixture in
            _ = try await fixture.send()
            fixture.emulator.addFault(Fault(token: "reset", action: .reset))
            let result = try await fixture.send(
                to: .tokens(["a", "ERROR_UNAVAILABLE", "reset", "ERROR_QUOTA_EXCEEDED", "b"])
            )
            #expect(result.codes == [nil, .upstreamUnavailable, .outcomeUnknown, .deviceRateExceeded, nil])
        }
    }
}
