import HTTPTypes
import Testing

@testable import GatewayHTTP

struct MetricsControllerTests {
    @Test("The metrics are shown as rendered, without a token, under their own media type")
    func metrics() async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await gateway.admin(.get, "/metrics", token: nil)
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            #expect(answer.body == "fcmgw_up 1\n")
        }
    }
}
