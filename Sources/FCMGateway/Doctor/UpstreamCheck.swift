import AsyncHTTPClient
import EventLoopHTTP
import FCMModel
import Foundation
import GatewayCore
import GatewayService
import GatewayStorage
import GatewayUpstream
import NIOCore
import NIOHTTP1
import NIOSSL

/// Looks whether FCM's servers can be reached as the gateway reaches them, and which time they tell.
struct UpstreamCheck: Sendable {
    /// How long one server may take, from the name's look-up to the answer.
    private static let timeout = TimeAmount.seconds(5)
    /// More servers than this are not tried: tenants' own can be many.
    private static let maxOrigins = 32

    private let configuration: UpstreamConfiguration
    private let clock: any WallClock

    /// Creates a check.
    init(_ configuration: UpstreamConfiguration, clock: any WallClock = SystemWallClock()) {
        self.configuration = configuration
        self.clock = clock
    }

    /// A server that the gateway may call.
    struct Origin: Sendable, Equatable {
        /// Its address.
        var url: String
        /// What for.
        var use: String
        /// Whether a tenant's messages depend on it; without any tenant, whether they would by default.
        var isNeeded: Bool
    }

    /// Where service accounts, as Google makes them, have access tokens from.
    private static let usualTokenHost = "oauth2.googleapis.com"

    /// The servers that the gateway would call, each once.
    static func origins(
        _ configuration: UpstreamConfiguration,
        _ tenants: [StoreInspection.TenantCredentials]
    ) -> [Origin] {
        let serving = tenants.filter { !$0.tenant.isDisabled }
        /// Whether a tenant sends by a protocol, and where it says so, to FCM itself.
        func isUsed(_ kind: UpstreamKind, byDefaultEndpoint: Bool) -> Bool {
            serving.isEmpty
                || serving.contains { tenant in
                    tenant.tenant.upstream == kind && !(byDefaultEndpoint && Self.endpoint(of: tenant) != nil)
                }
        }
        let hosts = configuration.allowedTokenHosts
        var uses = [
            Origin(
                url: configuration.legacyEndpoint,
                use: "legacy",
                isNeeded: isUsed(.legacy, byDefaultEndpoint: true)
            ),
            Origin(url: configuration.v1Endpoint, use: "v1", isNeeded: isUsed(.v1, byDefaultEndpoint: true)),
            Origin(url: configuration.iidEndpoint, use: "iid", isNeeded: false),
        ]
        uses += hosts.map { host in
            let isUsual = host == Self.usualTokenHost || hosts.count == 1
            return Origin(
                url: "https://\(host)",
                use: "access tokens",
                isNeeded: isUsual && isUsed(.v1, byDefaultEndpoint: false)
            )
        }
        uses += serving.compactMap { tenant in
            Self.endpoint(of: tenant)
                .map {
                    Origin(url: $0, use: "tenant \(tenant.tenant.id.text)", isNeeded: true)
                }
        }
        var origins: [Origin] = []
        for use in uses {
            if let known = origins.firstIndex(where: { $0.url == use.url }) {
                origins[known].use += ", \(use.use)"
                origins[known].isNeeded = origins[known].isNeeded || use.isNeeded
            } else {
                origins.append(use)
            }
        }
        return Array(origins.prefix(self.maxOrigins))
    }

    /// The server that a tenant's credential in use names instead of FCM.
    private static func endpoint(of tenant: StoreInspection.TenantCredentials) -> String? {
        tenant.credentials.first { $0.kind == tenant.tenant.upstream }?.endpoint
    }

    /// Tries all servers at once.
    func examine(_ origins: [Origin]) async -> [Finding] {
        let tls: TLSConfiguration
        do {
            tls = try self.configuration.tls() ?? .makeClientConfiguration()
        } catch {
            return [.problem(.upstream, nil, "upstream.caFile: \(error.message)", "Correct upstream.caFile")]
        }
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls, redirectConfiguration: .disallow)
        configuration.timeout.connect = Self.timeout
        configuration.connectionPool.retryConnectionEstablishment = false
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let findings = await withTaskGroup(of: (Int, [Finding]).self) { group in
            for (index, origin) in origins.enumerated() {
                group.addTask { (index, await self.examine(origin, client)) }
            }
            var results: [Int: [Finding]] = [:]
            for await (index, findings) in group { results[index] = findings }
            return results.sorted { $0.key < $1.key }.flatMap(\.value)
        }
        try? await client.shutdown()
        return findings
    }

    private func examine(_ origin: Origin, _ client: HTTPClient) async -> [Finding] {
        let url = origin.url
        let subject = "\(url) (\(origin.use))"
        let start = ContinuousClock.now
        do {
            var request = HTTPClientRequest(url: "\(url)/")
            // Without credentials: only whether a server answers is asked, not what it says.
            request.method = .GET
            let response = try await client.execute(request, timeout: Self.timeout)
            let milliseconds = start.duration(to: .now) / .milliseconds(1)
            let seen = "answers (HTTP \(response.status.code)) after \(Int(milliseconds)) ms"
            let seconds = response.headers.first(name: "Date").flatMap { HTTPDate.seconds($0) }
            let time = seconds.map { Timestamp(microseconds: Int64($0) * 1_000_000) }
            let clock = time.map { ClockCheck.finding(server: url, told: $0, now: self.clock.now()) }
            return [.ok(.upstream, subject, seen)] + [clock].compactMap(\.self)
        } catch {
            let obstacle = UpstreamObstacle(error)
            guard origin.isNeeded else {
                return [.warning(.upstream, subject, "\(obstacle.seen); no tenant's sends need it", obstacle.advice)]
            }
            return [.problem(.upstream, subject, obstacle.seen, obstacle.advice)]
        }
    }
}
