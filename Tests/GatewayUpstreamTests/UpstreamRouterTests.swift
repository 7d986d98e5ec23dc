import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct UpstreamRouterTests {
    private static let wire =
        "HTTP/1.1 200 OK\r\nContent-Length: 61\r\n\r\n"
        + #"{"multicast_id":1,"success":1,"results":[{"message_id":"1"}]}"#

    @Test("A legacy tenant's call goes by the legacy protocol")
    func legacy() async throws {
        try await RawUpstream.run(.send(Self.wire)) { upstream in
            try await V1Fixture.run { fixture in
                try await LegacySender.run { sender in
                    let router = UpstreamRouter(legacy: sender, v1: fixture.sender)
                    let call = try UpstreamCall.sample(endpoint: upstream.endpoint)
                    #expect(
                        await router.send(call)
                            == UpstreamResult(
                                answer: .recipients([.accepted(Acceptance(messageID: "1"))]),
                                upstreamCode: "200"
                            )
                    )
                    #expect(router.refusal(of: .token("t"), for: call.profile) == nil)
                    #expect(
                        router.refusal(of: .installation("f"), for: call.profile)
                            == sender.refusal(of: .installation("f"), for: call.profile)
                    )
                    #expect(router.refusal(of: .installation("f"), for: call.profile)?.code == .invalidTarget)
                    #expect(fixture.messages.isEmpty)
                }
            }
        }
    }

    @Test("A v1 tenant with a server key only has no credential")
    func v1() async throws {
        try await RawUpstream.run(.send(Self.wire)) { upstream in
            try await V1Fixture.run { fixture in
                try await LegacySender.run { sender in
                    let router = UpstreamRouter(legacy: sender, v1: fixture.sender)
                    let call = try UpstreamCall.sample(
                        of: fixture.tenant(),
                        credential: LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: upstream.endpoint)
                    )
                    #expect(
                        await router.send(call)
                            == UpstreamResult(answer: .failed(.upstreamCredentials), upstreamCode: "no_credential")
                    )
                    #expect(upstream.seen.current.accepted == 0)
                    #expect(fixture.messages.isEmpty)
                }
            }
        }
    }

    @Test("A v1 tenant's call goes by the v1 protocol")
    func v1Sender() async throws {
        try await V1Fixture.run { fixture in
            try await LegacySender.run(defaultEndpoint: fixture.endpoint) { legacy in
                let router = UpstreamRouter(legacy: legacy, v1: fixture.sender)
                let call = try fixture.call()
                #expect(await router.send(call).upstreamCode == "200")
                #expect(router.refusal(of: .installation("f"), for: call.profile) == nil)
                #expect(fixture.messages.count == 1)
            }
        }
    }
}
