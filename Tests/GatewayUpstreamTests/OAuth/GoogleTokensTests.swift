import FCMEmulator
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

@Suite("GoogleTokens", .timeLimit(.minutes(10)))
struct GoogleTokensTests {
    private static let account = Result {
        try ServiceAccountFile(making: "demo-project", tokenURI: "http://127.0.0.1/token")
    }

    @Test(
        "A token response that never completes ends at the timeout with an error span and a closed connection",
        arguments: [
            "",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        ]
    )
    func unendingAnswer(beginning: String) async throws {
        let log = SpanLog()
        try await RawServer.run(.send(beginning)) { server in
            var file = try Self.account.get()
            file.tokenURI = server.endpoint + "/token"
            let hosts = TokenHosts(["127.0.0.1:\(server.port)"])
            let pools = OriginPools.sample()
            let exchange = GoogleTokens(
                settings: .sample(tokenHosts: hosts) { $0.timeout = .milliseconds(100) },
                pools: pools,
                clock: ManualClock()
            )
            let credential = try V1Credential(serviceAccount: Array(file.json.utf8), endpoint: nil, allowing: hosts)
            let result = await exchange.issue(for: credential, in: .recorded(in: log))
            // Also closes a connection that was established too late to be used.
            await pools.shutdown()
            guard case .failure(let failure) = result else {
                Issue.record("a token without an answer")
                return
            }
            #expect(failure.kind == .unreachable && failure.code == "token_endpoint")
            #expect(failure.server == "127.0.0.1:\(server.port)")
            #expect(log.spans.map(\.isError) == [true])
            try await server.seen.wait { $0.closed == $0.accepted }
        }
    }
}
