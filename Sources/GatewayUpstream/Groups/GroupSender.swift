import EventLoopHTTP
package import FCMModel
package import GatewayCore
import HTTPTypes
package import Logging
package import NIOCore

/// Manages device groups at `/fcm/notification`, by the credential that the tenant's messages go by.
package final class GroupSender: GroupUpstream {
    private let configuration: UpstreamConfiguration
    private let pools: OriginPools
    private let tokens: AccessTokens?
    private let clock: any WallClock
    private let metrics: UpstreamMetrics
    private let sources = AccessTokenSources()

    /// A sender whose connections live on the event loops of a group.
    ///
    /// - Parameters:
    ///   - configuration: where FCM is.
    ///   - tokens: the service that gets access tokens; without it, tenants that send by v1 are told that there is no
    ///     credential.
    ///   - eventLoopGroup: the loops that connections live on.
    ///   - clock: tells the time.
    ///   - metrics: what is measured of calls.
    ///   - logger: hears of connections that can't be opened.
    package init(
        configuration: UpstreamConfiguration,
        tokens: AccessTokens?,
        eventLoopGroup: any EventLoopGroup,
        clock: any WallClock,
        metrics: UpstreamMetrics,
        logger: Logger
    ) {
        self.configuration = configuration
        self.pools = OriginPools(configuration: configuration.client, eventLoopGroup: eventLoopGroup, logger: logger)
        self.tokens = tokens
        self.clock = clock
        self.metrics = metrics
    }

    /// Makes a request by the tenant's sender id and the credential of its protocol (G-PROJECT).
    package func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: ContinuousClock.Instant
    ) async -> GroupResult {
        guard let senderID = profile.tenant.senderID else { return .missing("no_sender_id") }
        switch profile.tenant.upstream {
        case .legacy:
            guard let credential = profile.legacyCredential else { return .missing("no_credential") }
            let endpoint = credential.endpoint ?? self.configuration.legacyEndpoint
            let headers = Self.headers(credential, senderID: senderID)
            return await self.attempt(request, at: endpoint, headers: headers, deadline: deadline).result
        case .v1:
            guard let credential = profile.v1Credential, let tokens = self.tokens else {
                return .missing("no_credential")
            }
            let source = self.sources.source(of: profile.id, credential, from: tokens)
            return await self.perform(request, by: credential, source, senderID: senderID, deadline: deadline)
        }
    }

    /// Closes every connection.
    package func shutdown() async {
        await self.pools.shutdown()
    }

    /// Makes a request by an access token, and once more where FCM refuses it (V-TOKEN).
    private func perform(
        _ request: GroupRequest,
        by credential: ServiceAccountCredential,
        _ source: AccessTokenSource,
        senderID: String,
        deadline: ContinuousClock.Instant
    ) async -> GroupResult {
        let endpoint = credential.endpoint ?? self.configuration.v1Endpoint
        for isLast in [false, true] {
            let token: AccessToken
            switch await source.token(until: deadline) {
            case .success(let atHand): token = atHand
            case .failure(let failure): return GroupResult(failure)
            }
            let headers = Self.headers(token, senderID: senderID)
            let attempt = await self.attempt(request, at: endpoint, headers: headers, deadline: deadline)
            guard attempt.status == 401, source.refused(token), !isLast else { return attempt.result }
        }
        return .missing("401")
    }

    // MARK: One attempt

    /// What an attempt came to, with the status where there was an answer.
    private struct Attempt {
        var result: GroupResult
        var status: Int?
    }

    private func attempt(
        _ request: GroupRequest,
        at endpoint: String,
        headers: HTTPHeaderLines,
        deadline: ContinuousClock.Instant
    ) async -> Attempt {
        guard let pool = self.pools.pool(for: endpoint) else {
            return Attempt(result: GroupResult(transportFailure: "no_endpoint"))
        }
        let start = ContinuousClock.now
        let timeLeft = min(self.configuration.attemptTimeout, deadline - start)
        guard timeLeft > .zero else { return Attempt(result: GroupResult(transportFailure: "not_started")) }
        self.metrics.began()
        do {
            let response = try await pool.execute(
                Self.request(request, headers: headers),
                deadline: .now() + TimeAmount(timeLeft)
            )
            self.metrics.answered(in: ContinuousClock.now - start)
            let wire = LegacyResponse(
                status: response.status.code,
                retryAfter: response.fields[.retryAfter],
                body: response.body
            )
            return Attempt(
                result: GroupResponseReader.read(wire, now: self.clock.now().seconds),
                status: response.status.code
            )
        } catch {
            self.metrics.failed(error.code.rawValue, in: ContinuousClock.now - start)
            return Attempt(result: GroupResult(transportFailure: error.code.rawValue))
        }
    }

    private static func request(_ request: GroupRequest, headers: HTTPHeaderLines) -> HTTPClientRequest {
        let method: HTTPRequest.Method =
            switch request {
            case .change: .post
            case .lookUp: .get
            }
        return HTTPClientRequest(
            method: method,
            path: GroupRequestEncoder.path(of: request),
            headers: headers,
            body: GroupRequestEncoder.body(of: request)
        )
    }

    private static func headers(_ credential: LegacyCredential, senderID: String) -> HTTPHeaderLines {
        var headers = HTTPHeaderLines()
        headers.append(.authorization, Array("key=".utf8) + credential.serverKey.revealBytes())
        headers.append(.contentType, "application/json")
        headers.append(.projectID, senderID)
        return headers
    }

    private static func headers(_ token: AccessToken, senderID: String) -> HTTPHeaderLines {
        var headers = token.groupHeaders
        headers.append(.projectID, senderID)
        return headers
    }
}

extension GroupResult {
    /// A request that can't be made for want of something that an operator must provide.
    fileprivate static func missing(_ upstreamCode: String) -> GroupResult {
        GroupResult(.failure(GroupFailure(.upstreamCredentials)), upstreamCode: upstreamCode)
    }

    /// A request that could not be made for want of an access token.
    fileprivate init(_ failure: TokenFailure) {
        let kind: GroupFailure.Kind = failure.kind == .refused ? .upstreamCredentials : .upstreamUnavailable
        self.init(.failure(GroupFailure(kind, retryAfter: failure.retryAfter)), upstreamCode: failure.code)
    }
}

extension HTTPFieldKey {
    fileprivate static let authorization = HTTPFieldKey(.authorization)
    fileprivate static let contentType = HTTPFieldKey(.contentType)
    fileprivate static let projectID = HTTPFieldKey(HTTPField.Name("project_id") ?? .from)
    fileprivate static let retryAfter = HTTPFieldKey(.retryAfter)
}
