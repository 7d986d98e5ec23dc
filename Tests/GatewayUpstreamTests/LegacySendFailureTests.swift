import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayUpstream

struct LegacySendFailureTests {
    @Test("An https endpoint that doesn't speak TLS is unavailable and receives no request")
    func noTLS() async throws {
        try await RawServer.run(.send(WireAnswer.accepted)) { upstream in
            try await FCMClient.run(attemptTimeout: .milliseconds(200)) { sender in
                let result = await sender.send(try .sample(endpoint: "https://127.0.0.1:\(upstream.port)"))
                #expect(result.refusal?.code == .upstreamUnavailable)
                #expect(upstream.seen.current.requests.isEmpty)
            }
        }
    }

    @Test("An attempt that hangs ends at its timeout with an unknown outcome, and its connection is closed")
    func attemptDeadline() async throws {
        try await FCMClient.run(against: .nothing, attemptTimeout: .seconds(3)) { sender, upstream in
            let result = await sender.send(try .sample(endpoint: upstream.endpoint))
            #expect(result == .failed(.outcomeUnknown, "deadlineExceeded"))
            try await upstream.seen.wait { $0.closed == 1 }
            #expect(upstream.seen.current.requests.count == 1)
        }
    }

    @Test("A call whose deadline has passed sends nothing and measures no attempt")
    func passedDeadline() async throws {
        let metrics = TestMetrics()
        try await FCMClient.run(against: .send(WireAnswer.accepted), metrics: metrics) { sender, upstream in
            let call = try UpstreamCall.sample(endpoint: upstream.endpoint, timeLeft: .seconds(-1))
            #expect(await sender.send(call) == .failed(.upstreamUnavailable, "not_started"))
            #expect(upstream.seen.current.requests.isEmpty)
        }
        let timers = metrics.timers(label: "fcmgw_upstream_attempt_duration_seconds")
        #expect(timers.flatMap(\.values) == [])
    }

    @Test("Shutting down the pools ends a call in flight with an unknown outcome, and later calls send nothing")
    func shutdown() async throws {
        try await RawServer.run(.nothing) { upstream in
            let pools = OriginPools.sample()
            try await FCMClient.run(pools: pools) { sender in
                let call = try UpstreamCall.sample(endpoint: upstream.endpoint)
                try await withThrowingTaskGroup(of: SendResult.self) { group in
                    group.addTask { await sender.send(call) }
                    try await upstream.seen.wait { $0.requests.count == 1 }
                    await pools.shutdown()
                    let result = try await group.next()
                    #expect(result == .failed(.outcomeUnknown, "shutDown"))
                }
                let late = await sender.send(call)
                #expect(late.refusal?.code == .upstreamUnavailable)
                #expect(upstream.seen.current.requests.count == 1)
            }
        }
    }

    @Test("A client error means an unknown outcome only for a sent request", arguments: HTTPClientError.Code.allCases)
    func outcomes(code: HTTPClientError.Code) {
        let unsent = HTTPClientError(code: code, requestSent: false).meaning.code
        let sent = HTTPClientError(code: code, requestSent: true).meaning.code
        switch code {
        case .responseTooLarge, .invalidResponse:
            #expect(unsent == .upstreamProtocol)
            #expect(sent == .upstreamProtocol)
        case .connectFailed, .connectTimeout, .tlsFailed, .poolExhausted, .refused, .proxyFailed, .proxyUnauthorized:
            #expect(unsent == .upstreamUnavailable)
        case .deadlineExceeded, .connectionClosed, .cancelled, .shutDown:
            #expect(unsent == .upstreamUnavailable)
            #expect(sent == .outcomeUnknown)
        }
    }
}
