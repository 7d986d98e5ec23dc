import EventLoopHTTP
import FCMModel
package import GatewayCore
import HTTPTypes
import NIOCore

/// Proves credentials by a dry run to a topic, which reaches nobody.
///
/// Nothing is shared with sends: a token that is still good there would prove nothing of the key.
package final class CredentialCheck: CredentialProver {
    private static let topic = "fcm-gateway-credential-check"

    private let settings: UpstreamSettings
    private let exchange: any TokenExchange
    private let pools: OriginPools
    private let clock: any WallClock

    /// A check.
    ///
    /// - Parameters:
    ///   - settings: where messages go.
    ///   - exchange: asks for access tokens; it belongs to somebody else, who shuts it down.
    ///   - pools: the ways to FCM; they belong to somebody else, who shuts them down.
    ///   - clock: tells the time.
    package init(
        settings: UpstreamSettings,
        exchange: any TokenExchange,
        pools: OriginPools,
        clock: any WallClock
    ) {
        self.settings = settings
        self.exchange = exchange
        self.pools = pools
        self.clock = clock
    }

    /// Uses a tenant's credential for a dry run and says what came of it.
    package func prove(_ kind: UpstreamKind, of profile: TenantProfile) async -> CredentialReport {
        switch kind {
        case .legacy:
            guard let credential = profile.legacyCredential else { return .missing(kind, of: profile) }
            return await self.prove(credential).noting(profile)
        case .v1:
            guard let credential = profile.v1Credential else { return .missing(kind, of: profile) }
            return await self.prove(credential, projectID: profile.v1ProjectID ?? credential.projectID).noting(profile)
        }
    }

    // MARK: v1

    private func prove(_ credential: ServiceAccountCredential, projectID: String) async -> CredentialReport {
        let token: AccessToken
        switch await self.exchange.issue(for: credential) {
        case .success(let issued): token = AccessToken(issued.text)
        case .failure(let failure): return CredentialReport(failure, of: credential)
        }
        guard let topic = TopicName(Self.topic),
            let pool = self.pools.pool(for: credential.endpoint ?? self.settings.configuration.v1Endpoint)
        else { return .badEndpoint }
        let request = HTTPClientRequest(
            method: .post,
            path: V1Path.send(project: projectID),
            headers: token.headers,
            body: V1RequestEncoder.encode(Self.message, to: .topic(topic), now: self.clock.now().seconds)
        )
        do {
            let response = try await pool.execute(request, deadline: self.deadline)
            return Self.report(response, credential: credential, projectID: projectID)
        } catch {
            return Self.unreachable(pool, error)
        }
    }

    private static func report(
        _ response: HTTPClientResponse,
        credential: ServiceAccountCredential,
        projectID: String
    ) -> CredentialReport {
        let status = response.status.code
        let wire = V1Response(status: status, retryAfter: nil, body: response.body)
        let reading = V1ResponseReader.read(wire, for: .topic, now: 0)
        if case .accepted = reading.answer {
            return CredentialReport(.valid, "FCM takes messages for project \(projectID)", upstreamCode: String(status))
        }
        return CredentialReport(
            status: status,
            V1Complaint(response.body),
            projectID: projectID,
            credential: credential
        )
    }

    // MARK: Legacy

    private func prove(_ credential: LegacyCredential) async -> CredentialReport {
        guard let topic = TopicName(Self.topic),
            let pool = self.pools.pool(for: credential.endpoint ?? self.settings.configuration.legacyEndpoint),
            let body = try? LegacyRequestEncoder.encode(Self.message, to: .topic(topic))
        else { return .badEndpoint }
        let request = LegacySender.request(body, authorizedBy: credential)
        do {
            let response = try await pool.execute(request, deadline: self.deadline)
            let wire = LegacyResponse(status: response.status.code, retryAfter: nil, body: response.body)
            return Self.report(LegacyResponseReader.read(wire, for: .topic(topic), now: 0))
        } catch {
            return Self.unreachable(pool, error)
        }
    }

    private static func report(_ result: UpstreamResult) -> CredentialReport {
        let code = result.upstreamCode
        switch result.answer {
        case .recipients, .group:
            return CredentialReport(.valid, "FCM takes messages by this server key", upstreamCode: code)
        case .failed(.upstreamCredentials):
            return CredentialReport(.keyRefused, "FCM refuses the server key", upstreamCode: code)
        case .failed(.upstreamUnavailable), .failed(.upstreamInternal):
            return CredentialReport(
                .endpointUnreachable,
                "FCM is in trouble or overloaded; try again later",
                upstreamCode: code
            )
        case .failed:
            return CredentialReport(
                .unexpected,
                "What answers does not speak the legacy protocol; it is switched off at Google's",
                upstreamCode: code
            )
        }
    }

    // MARK: Both

    private static var message: Message {
        var message = Message()
        message.dryRun = true
        message.data = [DataEntry(key: "check", value: "1")]
        return message
    }

    private var deadline: NIODeadline { .now() + TimeAmount(self.settings.attemptTimeout.current) }

    private static func unreachable(_ pool: HTTPClientPool, _ error: HTTPClientError) -> CredentialReport {
        CredentialReport(
            .endpointUnreachable,
            "\(pool.origin.authority) gives no answer: \(error.code.rawValue)",
            upstreamCode: error.code.rawValue
        )
    }
}
