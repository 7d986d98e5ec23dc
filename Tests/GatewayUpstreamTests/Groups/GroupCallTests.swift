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

    @Test("By v1, exactly the fields go out that the vectors have, with the gateway's own token and sender id")
    func v1Fields() async throws {
        try await GroupFixture.v1 { fixture in
            for request in Self.requests {
                _ = await fixture.client.perform(
                    request,
                    of: fixture.profile,
                    deadline: .now + .seconds(600),
                    origin: .untraced
                )
            }
            #expect(fixture.requests.map(\.method) == ["POST", "GET"])
            for entry in fixture.requests {
                var fields = Dictionary(entry.headers.map { ($0.name.lowercased(), $0.value) }) { "\($0),\($1)" }
                #expect(fields.removeValue(forKey: "authorization")?.hasPrefix("Bearer ya29.") == true)
                #expect(fields.removeValue(forKey: "access_token_auth") == "true")
                #expect(fields.removeValue(forKey: "project_id") == GroupFixture.senderID)
                #expect(fields.removeValue(forKey: "content-type") == "application/json")
                #expect(Set(fields.keys).isSubset(of: ["host", "content-length"]), "\(fields)")
            }
        }
    }

    @Test("By the legacy protocol the server key goes out instead of a token")
    func legacyFields() async throws {
        try await GroupFixture.legacy { fixture in
            for request in Self.requests {
                _ = await fixture.client.perform(
                    request,
                    of: fixture.profile,
                    deadline: .now + .seconds(600),
                    origin: .untraced
                )
            }
            #expect(fixture.requests.count == 2)
            for entry in fixture.requests {
                var fields = Dictionary(entry.headers.map { ($0.name.lowercased(), $0.value) }) { "\($0),\($1)" }
                #expect(fields.removeValue(forKey: "authorization") == "key=AAAA:server-key")
                #expect(fields.removeValue(forKey: "project_id") == GroupFixture.senderID)
                #expect(fields.removeValue(forKey: "content-type") == "application/json")
                #expect(Set(fields.keys).isSubset(of: ["host", "content-length"]), "\(fields)")
            }
        }
    }

    @Test("A token that FCM no longer takes is replaced once")
    func refusedToken() async throws {
        try await GroupFixture.v1 { fixture in
            let request = GroupRequest.change(GroupChange(.create, name: "g", tokens: ["a"]))
            _ = await fixture.client.perform(
                .lookUp(name: "x"),
                of: fixture.profile,
                deadline: .now + .seconds(600),
                origin: .untraced
            )
            fixture.emulator.revokeAccessTokens()
            let result = await fixture.client.perform(
                request,
                of: fixture.profile,
                deadline: .now + .seconds(600),
                origin: .untraced
            )
            #expect((try? result.answer.get()) != nil, "\(result)")
            #expect(fixture.upstreamMembers("g") == ["a"])
        }
    }

    @Test("Without a sender id, or without the credential of its protocol, nothing goes out")
    func missing() async throws {
        try await GroupFixture.legacy { fixture in
            func perform(_ upstream: UpstreamKind, senderID: String?) async throws -> GroupResult {
                var tenant = fixture.profile.tenant
                (tenant.upstream, tenant.senderID) = (upstream, senderID)
                let profile = TenantProfile(
                    tenant: tenant,
                    legacyCredential: fixture.profile.legacyCredential,
                    v1Credential: nil,
                    storedCredentials: [],
                    limits: LimitPolicies(),
                    pseudonymizer: .sample()
                )
                return await fixture.client.perform(
                    .lookUp(name: "g"),
                    of: profile,
                    deadline: .now + .seconds(600),
                    origin: .untraced
                )
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

    @Test("Trouble on the way is FCM's being unavailable, and its answers are read")
    func trouble() async throws {
        try await GroupFixture.legacy { fixture in
            func perform(_ action: FaultAction) async -> GroupResult {
                fixture.emulator.addFault(Fault(path: "/fcm/notification", action: action))
                return await fixture.client.perform(
                    .lookUp(name: "g"),
                    of: fixture.profile,
                    deadline: .now + .seconds(600),
                    origin: .untraced
                )
            }
            let reset = await perform(.reset)
            #expect(reset.answer == .failure(GroupFailure(.upstreamUnavailable)))
            let retryAfter = [HeaderField(name: "Retry-After", value: "30")]
            let busy = await perform(.status(503, body: nil, headers: retryAfter))
            #expect(busy.answer == .failure(GroupFailure(.upstreamUnavailable, retryAfter: 30)))
            let garbage = await perform(.garbage)
            #expect(garbage.answer == .failure(GroupFailure(.upstreamProtocol)))
            let late = await fixture.client.perform(
                .lookUp(name: "g"),
                of: fixture.profile,
                deadline: .now,
                origin: .untraced
            )
            #expect(late == GroupResult(transportFailure: "not_started"))
        }
    }
}
