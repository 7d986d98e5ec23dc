import FCMEmulator
import FCMModel
import Foundation
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

struct GroupCallTests {
    private static let requests: [GroupRequest] = [
        .change(GroupChange(.create, name: "appUser-7", tokens: ["r1", "r2"])),
        .lookUp(name: "a b&c/é"),
    ]

    @Test("A group request carries only the credential, sender id and content type", arguments: UpstreamKind.allCases)
    func fields(upstream: UpstreamKind) async throws {
        try await GroupFixture.run(upstream) { fixture in
            for request in Self.requests { await fixture.perform(request) }
            #expect(fixture.requests.map(\.method) == ["POST", "GET"])
            for entry in fixture.requests {
                var fields = Dictionary(entry.headers.map { ($0.name.lowercased(), $0.value) }) { "\($0),\($1)" }
                let authorization = fields.removeValue(forKey: "authorization")
                switch upstream {
                case .legacy:
                    #expect(authorization == "key=AAAA:server-key")
                case .v1:
                    #expect(authorization?.hasPrefix("Bearer ya29.") == true)
                    #expect(fields.removeValue(forKey: "access_token_auth") == "true")
                }
                #expect(fields.removeValue(forKey: "project_id") == GroupFixture.senderID)
                #expect(fields.removeValue(forKey: "content-type") == "application/json")
                #expect(Set(fields.keys).isSubset(of: ["host", "content-length"]), "\(fields)")
            }
        }
    }

    @Test("A group request with a revoked access token succeeds with a new one")
    func refusedToken() async throws {
        try await GroupFixture.run(.v1) { fixture in
            let request = GroupRequest.change(GroupChange(.create, name: "g", tokens: ["a"]))
            await fixture.perform(.lookUp(name: "x"))
            fixture.emulator.revokeAccessTokens()
            let result = await fixture.perform(request)
            #expect((try? result.answer.get()) != nil, "\(result)")
            #expect(fixture.upstreamMembers("g") == ["a"])
        }
    }

    @Test("A tenant without a sender id, or without a credential of its upstream, sends no group requests")
    func missing() async throws {
        try await GroupFixture.legacy { fixture in
            func perform(_ upstream: UpstreamKind, senderID: String?) async throws -> GroupResult {
                var tenant = fixture.profile.tenant
                (tenant.upstream, tenant.senderID) = (upstream, senderID)
                let serverKey = fixture.profile.legacyCredential
                let profile = TenantProfile(tenant: tenant, legacyCredential: serverKey, v1Credential: nil)
                return await fixture.perform(.lookUp(name: "g"), of: profile)
            }
            func text(_ result: GroupResult) -> String {
                guard case .failure(let failure) = result.answer else { return "" }
                #expect(failure.kind == .upstreamCredentials)
                return failure.text ?? ""
            }
            let withoutSender = try await perform(.legacy, senderID: nil)
            #expect(withoutSender.upstreamCode == "no_sender_id")
            #expect(text(withoutSender).contains("--sender-id"))
            let withoutCredential = try await perform(.v1, senderID: "1")
            #expect(withoutCredential.upstreamCode == "no_credential")
            #expect(text(withoutCredential).contains("credential put"))
            #expect(fixture.requests.isEmpty)
        }
    }

    @Test("A lost connection, a 503, garbage and a passed deadline each map to a group failure")
    func trouble() async throws {
        try await GroupFixture.legacy { fixture in
            func perform(_ action: FaultAction) async -> GroupResult {
                fixture.emulator.addFault(Fault(path: "/fcm/notification", action: action))
                return await fixture.perform(.lookUp(name: "g"))
            }
            let reset = await perform(.reset)
            #expect(reset.answer == .failure(GroupFailure(.upstreamUnavailable)))
            let retryAfter = [HeaderField(name: "Retry-After", value: "30")]
            let busy = await perform(.status(503, body: nil, headers: retryAfter))
            #expect(busy.answer == .failure(GroupFailure(.upstreamUnavailable, retryAfter: 30)))
            let garbage = await perform(.garbage)
            #expect(garbage.answer == .failure(GroupFailure(.upstreamProtocol)))
            let late = await fixture.perform(.lookUp(name: "g"), deadline: .now)
            #expect(late == GroupResult(transportFailure: "not_started"))
        }
    }
}
