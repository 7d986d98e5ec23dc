import FCMEmulator
import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayUpstream

@Suite("CredentialCheck", .timeLimit(.minutes(10)))
struct CredentialCheckTests {
    private static let path = "/v1/projects/demo-project/messages:send"

    private func refusal(_ code: Int, _ reason: String) -> FaultAction {
        let type = "type.googleapis.com/google.rpc.ErrorInfo"
        return .status(
            code,
            body: #"{"error":{"code":\#(code),"message":"m","details":[{"@type":"\#(type)","reason":"\#(reason)"}]}}"#,
            headers: []
        )
    }

    @Test("A dry run proves a valid service account, and each check requests a new access token")
    func valid() async throws {
        try await V1Fixture.run { fixture in
            let profile = try fixture.call().profile
            for _ in 0..<2 {
                let report = try await fixture.prove(of: profile)
                #expect(report.finding == .valid)
                #expect(report.detail.contains("demo-project"))
            }
            #expect(fixture.tokenRequests.count == 2)
            #expect(fixture.messages.allSatisfy { $0.body.hasPrefix(#"{"validate_only":true"#) })
            #expect(fixture.emulator.deliveries().isEmpty)
        }
    }

    @Test("A deleted key and clock skew are reported as different findings")
    func refusedKey() async throws {
        try await V1Fixture.run { fixture in
            fixture.emulator.removeServiceAccount(clientEmail: fixture.file.clientEmail)
            let report = try await fixture.prove()
            #expect(report.finding == .keyRefused)
            #expect(report.upstreamCode == "invalid_grant")
            #expect(report.detail.contains(fixture.file.clientEmail))
        }
        try await V1Fixture.run(skewSeconds: -7_200) { fixture async throws in
            #expect(try await fixture.prove().finding == .clockSkew)
        }
    }

    @Test("A project that isn't the service account's own, or doesn't exist, is reported as a mismatch")
    func projects() async throws {
        try await V1Fixture.run { fixture in
            _ = try await fixture.emulator.makeServiceAccount(projectID: "other-project")
            for project in ["other-project", "nobodys"] {
                let report = try await fixture.prove(of: fixture.call(projectID: project).profile)
                #expect(report.finding == .projectMismatch)
                #expect(report.detail.contains(project))
                #expect(report.detail.contains("demo-project"))
            }
        }
    }

    @Test("Each FCM error or lost connection maps to a finding and an upstream code")
    func refusals() async throws {
        try await V1Fixture.run { fixture in
            let cases: [(FaultAction, CredentialReport.Finding, String)] = [
                (self.refusal(403, "SERVICE_DISABLED"), .apiDisabled, "SERVICE_DISABLED"),
                (self.refusal(403, "IAM_PERMISSION_DENIED"), .permissionDenied, "IAM_PERMISSION_DENIED"),
                (self.refusal(401, "SOMETHING_NEW"), .keyRefused, "401"),
                (.page(503), .endpointUnreachable, "503"), (.page(429), .endpointUnreachable, "429"),
                (.page(302), .unexpected, "302"), (.garbage, .unexpected, "200"),
                (.reset, .endpointUnreachable, "connectionClosed"),
            ]
            for (action, finding, code) in cases {
                fixture.emulator.addFault(Fault(path: Self.path, action: action))
                let report = try await fixture.prove()
                #expect(report.finding == finding)
                #expect(report.upstreamCode == code)
            }
        }
    }

    @Test("A failure to get an access token is reported as unreachable endpoint, refused host or unusable key")
    func tokens() async throws {
        try await V1Fixture.run { fixture in
            fixture.emulator.addFault(Fault(path: "/token", action: .page(502)))
            let report = try await fixture.prove()
            #expect((report.finding, report.upstreamCode) == (.tokenEndpointUnreachable, "token_http_502"))
            fixture.emulator.addFault(Fault(path: "/token", action: .reset))
            #expect(try await fixture.prove().finding == .tokenEndpointUnreachable)
            let foreign = try fixture.call(credential: .sample()).profile
            #expect(try await fixture.prove(of: foreign).finding == .tokenHostRefused)
            var file = V1Credential.sampleMembers()
            file["token_uri"] = fixture.file.tokenURI
            let unusable = try fixture.serviceAccount(V1Credential.sampleFile(file))
            let profile = try fixture.call(credential: unusable).profile
            #expect(try await fixture.prove(of: profile).finding == .keyUnusable)
        }
    }

    @Test("A dry run accepts a valid server key and reports a bad key, a 404 and a 503")
    func legacy() async throws {
        try await V1Fixture.run(emulator: EmulatorConfiguration(port: 0, serverKeys: ["good"])) { fixture in
            func profile(_ key: String) throws -> TenantProfile {
                let credential = LegacyCredential(serverKey: Secret(key), endpoint: fixture.endpoint)
                return try UpstreamCall.sample(credential: credential).profile
            }
            let (good, bad) = (try profile("good"), try profile("bad"))
            let report = try await fixture.prove(.legacy, of: good)
            #expect(report.finding == .valid)
            // The tenant has no sender id.
            #expect(report.detail.contains("--sender-id"))
            #expect(fixture.emulator.deliveries().isEmpty)
            #expect(try await fixture.prove(.legacy, of: bad).finding == .keyRefused)
            fixture.emulator.addFault(Fault(path: "/fcm/send", action: .page(404)))
            #expect(try await fixture.prove(.legacy, of: good).finding == .unexpected)
            fixture.emulator.addFault(Fault(path: "/fcm/send", action: .page(503)))
            #expect(try await fixture.prove(.legacy, of: good).finding == .endpointUnreachable)
        }
    }

    @Test("Credential checks bypass an open breaker, and their failures open it", arguments: UpstreamKind.allCases)
    func breaker(kind: UpstreamKind) async throws {
        try await V1Fixture.run { fixture in
            let call: UpstreamCall =
                switch kind {
                case .legacy: try .sample(endpoint: fixture.endpoint)
                case .v1: try fixture.call()
                }
            let path = kind == .v1 ? Self.path : "/fcm/send"
            fixture.emulator.addFault(Fault(path: path, times: 1_000, action: .page(503)))
            for _ in 0..<7 {
                let report = try await fixture.prove(kind, of: call.profile)
                #expect((report.finding, report.upstreamCode) == (.endpointUnreachable, "503"))
            }
            fixture.emulator.deleteFaults()
            #expect(await fixture.client.send(call).upstreamCode == "breaker_open")
            #expect(try await fixture.prove(kind, of: call.profile).finding == .valid)
        }
    }

    @Test("A check without the credential reports it missing and sends nothing", arguments: UpstreamKind.allCases)
    func missing(kind: UpstreamKind) async throws {
        try await V1Fixture.run { fixture in
            let profile = try UpstreamCall.sample(credential: nil).profile
            let report = try await fixture.prove(kind, of: profile)
            #expect(report.finding == .missing)
            #expect(report.detail.contains("credential put") == (kind == .legacy))
            #expect(fixture.emulator.journal().isEmpty)
        }
    }
}

extension V1Fixture {
    fileprivate func prove(
        _ kind: UpstreamKind = .v1,
        of profile: TenantProfile? = nil
    ) async throws -> CredentialReport {
        await self.client.prove(kind, of: try profile ?? self.call().profile, origin: .sample)
    }
}
