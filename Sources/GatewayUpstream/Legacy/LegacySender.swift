import EventLoopHTTP
package import FCMModel
package import GatewayCore
import HTTPTypes
package import Logging
package import NIOCore

/// Sends by the legacy protocol: one `POST /fcm/send` for each call.
package final class LegacySender: UpstreamSender {
    private static let path = "/fcm/send"
    private static let keyScheme = Array("key=".utf8)
    private static let mediaType = Array("application/json".utf8)

    private let configuration: UpstreamConfiguration
    private let pools: OriginPools
    private let clock: any WallClock
    private let metrics: UpstreamMetrics

    /// A sender whose connections live on the event loops of a group.
    package init(
        configuration: UpstreamConfiguration,
        eventLoopGroup: any EventLoopGroup,
        clock: any WallClock,
        metrics: UpstreamMetrics,
        logger: Logger
    ) {
        self.configuration = configuration
        self.pools = OriginPools(
            configuration: configuration.client,
            eventLoopGroup: eventLoopGroup,
            logger: logger
        )
        self.clock = clock
        self.metrics = metrics
    }

    /// The legacy protocol knows no installation ids, no negation and at most two operators in a condition.
    package func objection(to target: Target, of profile: TenantProfile) -> UpstreamObjection? {
        switch target {
        case .token, .tokens, .topic, .notificationKey:
            nil
        case .installation, .installations:
            UpstreamObjection(
                code: .invalidTarget,
                field: target.kind.rawValue,
                detail: "This tenant sends by the legacy protocol, which knows registration tokens only"
            )
        case .condition(let condition):
            condition.fits(.legacy)
                ? nil
                : UpstreamObjection(
                    code: .invalidField,
                    field: target.kind.rawValue,
                    detail: "This tenant sends by the legacy protocol: at most two operators and no negation"
                )
        }
    }

    /// Sends a message and reads the answer.
    package func send(_ call: UpstreamCall) async -> UpstreamResult {
        switch self.prepare(call) {
        case .failure(let obstacle):
            return UpstreamResult(answer: .failed(obstacle.outcome), upstreamCode: obstacle.name)
        case .success(let attempt):
            let start = ContinuousClock.now
            self.metrics.began()
            let timeLeft = min(self.configuration.attemptTimeout, call.deadline - start)
            do {
                let response = try await attempt.pool.execute(attempt.request, deadline: .now() + TimeAmount(timeLeft))
                self.metrics.answered(in: ContinuousClock.now - start)
                return self.read(response, for: call.target)
            } catch {
                self.metrics.failed(error.code.rawValue, in: ContinuousClock.now - start)
                return UpstreamResult(answer: .failed(error.outcomeCode), upstreamCode: error.code.rawValue)
            }
        }
    }

    /// A request and where it goes.
    private struct Attempt {
        let pool: HTTPClientPool
        let request: HTTPClientRequest
    }

    /// Why there is nothing to send or nowhere to send it.
    private struct Obstacle: Error {
        let outcome: OutcomeCode
        let name: String
    }

    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func prepare(_ call: UpstreamCall) -> Result<Attempt, Obstacle> {
        guard let credential = call.profile.legacyCredential else {
            return .failure(Obstacle(outcome: .upstreamCredentials, name: "no_credential"))
        }
        guard let pool = self.pools.pool(for: credential.endpoint ?? self.configuration.legacyEndpoint) else {
            return .failure(Obstacle(outcome: .upstreamUnavailable, name: "no_endpoint"))
        }
        guard let body = try? LegacyRequestEncoder.encode(call.message, to: call.target) else {
            return .failure(Obstacle(outcome: .invalidTarget, name: "inexpressible"))
        }
        return .success(Attempt(pool: pool, request: Self.request(body, authorizedBy: credential)))
    }

    /// The request that carries a body.
    static func request(_ body: ByteBuffer, authorizedBy credential: LegacyCredential) -> HTTPClientRequest {
        var headers = HTTPHeaderLines()
        headers.append(.authorization, Self.keyScheme + credential.serverKey.revealBytes())
        headers.append(.contentType, Self.mediaType)
        return HTTPClientRequest(method: .post, path: Self.path, headers: headers, body: body)
    }

    @inline(never)  // As for `prepare`.
    private func read(_ response: HTTPClientResponse, for target: Target) -> UpstreamResult {
        LegacyResponseReader.read(
            LegacyResponse(
                status: response.status.code,
                retryAfter: response.fields[.retryAfter],
                body: response.body
            ),
            for: target,
            now: self.clock.now().seconds
        )
    }

    /// Closes every connection.
    package func shutdown() async {
        await self.pools.shutdown()
    }
}

extension HTTPFieldKey {
    fileprivate static let authorization = HTTPFieldKey(.authorization)
    fileprivate static let contentType = HTTPFieldKey(.contentType)
    fileprivate static let retryAfter = HTTPFieldKey(.retryAfter)
}
