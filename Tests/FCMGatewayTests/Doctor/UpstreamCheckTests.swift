import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestKit
import GatewayUpstream
import Testing

@testable import FCMGateway
@testable import GatewayService

struct UpstreamCheckTests {
    /// `Date` as a server writes it that is so many seconds off.
    private static func date(_ now: Timestamp, _ offset: Double) -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date(timeIntervalSince1970: Double(now.seconds) + offset))
    }

    private static func origin(_ server: StubServer) -> UpstreamCheck.Origin {
        UpstreamCheck.Origin(url: server.address, use: "legacy", isNeeded: true)
    }

    @Test(
        "A server whose clock differs is told of; any answer at all is reachability",
        arguments: [(0, 200, .ok), (120, 404, .warning), (-120, 403, .warning), (-4_000, 500, .problem)]
            as [(Double, Int, Finding.Status)]
    )
    func skew(offset: Double, status: Int, expected: Finding.Status) async throws {
        let clock = ManualClock()
        let reply = StubServer.Reply(status: status, headers: ["Date": Self.date(clock.now(), offset)])
        try await StubServer.with({ _ in reply }) { server in
            let findings = await UpstreamCheck(UpstreamConfiguration(), clock: clock)
                .examine([Self.origin(server)])
            #expect(findings.map(\.check) == [.upstream, .clock])
            #expect(findings.map(\.status) == [.ok, expected], "\(findings)")
            #expect(findings.first?.seen.contains("HTTP \(status)") == true)
            #expect(server.requests.map(\.line) == ["GET /"])
            #expect(server.requests.allSatisfy { $0.headers["authorization"] == nil })
        }
    }

    @Test("An answer without a readable date says nothing of the clock", arguments: [[:], ["Date": "yesterday"]])
    func undated(headers: [String: String]) async throws {
        try await StubServer.with({ _ in StubServer.Reply(headers: headers) }) { server in
            let findings = await UpstreamCheck(UpstreamConfiguration()).examine([Self.origin(server)])
            #expect(findings.map(\.check) == [.upstream])
        }
    }

    @Test("Each server is tried once, whatever it is for")
    func origins() {
        var configuration = UpstreamConfiguration()
        configuration.allowedTokenHosts = ["token.example", "fcm.googleapis.com"]
        let origins = UpstreamCheck.origins(configuration, [])
        #expect(
            origins.map(\.url) == ["https://fcm.googleapis.com", "https://iid.googleapis.com", "https://token.example"]
        )
        #expect(origins.first?.use == "legacy, v1, access tokens")
        // As long as there is no tenant, nobody knows what will be needed.
        #expect(origins.map(\.isNeeded) == [true, false, false])
    }

    @Test("What no tenant needs is no problem")
    func needs() throws {
        func tenant(_ name: String, _ upstream: UpstreamKind, endpoint: String?, isDisabled: Bool = false) throws
            -> StoreInspection.TenantCredentials
        {
            let id = try #require(TenantID(name))
            let time = Timestamp(microseconds: 0)
            let own = Tenant(
                id: id,
                displayName: name,
                upstream: upstream,
                isDisabled: isDisabled,
                createdAt: time,
                updatedAt: time
            )
            let stored = StoredCredential(
                tenant: id,
                kind: upstream,
                version: 1,
                envelope: Envelope(wrappedKey: Data(), sealed: Data()),
                endpoint: endpoint,
                fingerprint: "",
                createdAt: time
            )
            return StoreInspection.TenantCredentials(tenant: own, credentials: [stored])
        }
        var configuration = UpstreamConfiguration()
        configuration.legacyEndpoint = "https://legacy"
        configuration.v1Endpoint = "https://v1"
        configuration.iidEndpoint = "https://iid"
        let changed = configuration
        func needed(_ tenants: StoreInspection.TenantCredentials...) -> [String] {
            UpstreamCheck.origins(changed, tenants).filter(\.isNeeded).map(\.url)
        }
        #expect(try needed(tenant("a", .legacy, endpoint: nil)) == ["https://legacy"])
        #expect(try needed(tenant("a", .legacy, endpoint: "http://own")) == ["http://own"])
        #expect(try needed(tenant("a", .v1, endpoint: nil)) == ["https://v1", "https://oauth2.googleapis.com"])
        let asleep = try tenant("b", .v1, endpoint: nil, isDisabled: true)
        #expect(try needed(tenant("a", .legacy, endpoint: nil), asleep) == ["https://legacy"])
    }
}
