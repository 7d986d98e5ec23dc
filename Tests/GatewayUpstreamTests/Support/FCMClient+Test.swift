import CoreMetrics
import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayTestKit
import Logging
import NIOPosix

@testable import GatewayUpstream

extension FCMClient {
    /// Runs a body with a client that gets no access tokens and doesn't wait before retries, then shuts it down.
    static func run(
        defaultEndpoint: String = "http://127.0.0.1:1",
        attemptTimeout: Duration = .seconds(600),
        pools: OriginPools = .sample(),
        metrics: any MetricsFactory = NOOPMetricsHandler.instance,
        log: AttemptRecorder.Log = AttemptRecorder.Log(),
        pause: @escaping @Sendable (Duration) async throws -> Void = { _ in },
        _ body: (FCMClient) async throws -> Void
    ) async throws {
        var settings = UpstreamSettings.sample {
            $0.legacyEndpoint = defaultEndpoint
            $0.timeout = attemptTimeout
        }
        settings.pause = pause
        let metrics = GatewayMetrics(factory: metrics)
        let exchange = GoogleTokens(settings: settings, pools: pools, clock: ManualClock())
        let client = FCMClient(
            settings: settings,
            pools: pools,
            exchange: exchange,
            tokens: AccessTokens(exchange: exchange, metrics: metrics),
            clock: ManualClock(),
            metrics: metrics,
            log: log
        )
        do {
            try await body(client)
        } catch {
            await client.shutdown()
            throw error
        }
        await client.shutdown()
    }

    /// Runs a body with a client, and a server that gives every request the same answer.
    static func run(
        against reply: RawServer.Reply,
        attemptTimeout: Duration = .seconds(600),
        metrics: any MetricsFactory = NOOPMetricsHandler.instance,
        pause: @escaping @Sendable (Duration) async throws -> Void = { _ in },
        _ body: (FCMClient, RawServer) async throws -> Void
    ) async throws {
        try await RawServer.run(reply) { upstream in
            try await Self.run(attemptTimeout: attemptTimeout, metrics: metrics, pause: pause) { client in
                try await body(client, upstream)
            }
        }
    }
}

extension GoogleTokens {
    /// An exchange without a log.
    convenience init(settings: UpstreamSettings, pools: OriginPools, clock: any WallClock) {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        self.init(settings: settings, pools: pools, clock: clock, logger: logger)
    }
}

extension UpstreamCall {
    /// A call for a sample tenant whose credential has this endpoint.
    static func sample(
        to target: Target = .token("device"),
        message: Message = Message(),
        endpoint: String?,
        timeLeft: Duration = .seconds(60)
    ) throws -> UpstreamCall {
        try .sample(
            to: target,
            message: message,
            credential: LegacyCredential(serverKey: Secret("AAAA:server-key"), endpoint: endpoint),
            timeLeft: timeLeft
        )
    }

    /// A call for a sample tenant with or without a credential.
    static func sample(
        of tenant: Tenant? = nil,
        to target: Target = .token("device"),
        message: Message = Message(),
        credential: LegacyCredential?,
        v1Credential: V1Credential? = nil,
        timeLeft: Duration = .seconds(60),
        trace: RequestTrace? = nil
    ) throws -> UpstreamCall {
        let profile = TenantProfile(
            tenant: try tenant ?? .sample(),
            legacyCredential: credential,
            v1Credential: v1Credential
        )
        let command = SendCommand(
            by: Caller(
                principal: Principal(profile: profile, key: try .sample(of: .generate())),
                origin: RequestOrigin(method: "POST", requestID: "request-1", trace: trace),
                deadline: .now + timeLeft
            ),
            to: target,
            message: message,
            payloadBytes: message.payloadBytes
        )
        return UpstreamCall(command, target: target)
    }
}

extension TenantProfile {
    /// A tenant with only these credentials.
    convenience init(tenant: Tenant, legacyCredential: LegacyCredential?, v1Credential: V1Credential?) {
        self.init(
            tenant: tenant,
            legacyCredential: legacyCredential,
            v1Credential: v1Credential,
            storedCredentials: [],
            limits: LimitPolicies(),
            pseudonymizer: .sample()
        )
    }
}

extension SendResult {
    /// The code of each recipient's outcome, `nil` if it was accepted; empty if the call failed as a whole.
    var codes: [OutcomeCode?] {
        guard case .recipients(let outcomes) = self.answer else { return [] }
        return outcomes.map { outcome in
            switch outcome {
            case .accepted: nil
            case .rejected(let rejection): rejection.code
            }
        }
    }

    var isAccepted: Bool { self.codes == [nil] }

    /// One recipient, whose message was accepted with an id.
    static func accepted(_ id: String) -> SendResult {
        SendResult([.accepted(Acceptance(messageID: id))], upstreamCode: "200")
    }

    /// The call failed as a whole.
    static func failed(_ code: OutcomeCode, _ upstreamCode: String) -> SendResult {
        SendResult(refused: code, upstreamCode: upstreamCode)
    }
}

extension OriginPools {
    /// Pools without a log.
    static func sample() -> OriginPools {
        OriginPools(
            configuration: .patient,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }
}

extension HTTPClientConfiguration {
    /// Waits for a connection as long as a test may take, since the machine may be busy.
    static var patient: HTTPClientConfiguration {
        var configuration = HTTPClientConfiguration()
        configuration.connectTimeout = .seconds(600)
        return configuration
    }
}

extension UpstreamSettings {
    /// Settings whose attempts may take as long as a test, with the test's changes.
    static func sample(
        tokenHosts: TokenHosts? = nil,
        client: HTTPClientConfiguration = HTTPClientConfiguration(),
        _ change: (inout UpstreamConfiguration) -> Void = { _ in }
    ) -> UpstreamSettings {
        var configuration = UpstreamConfiguration()
        configuration.timeout = .seconds(600)
        change(&configuration)
        return UpstreamSettings(configuration, tokenHosts: tokenHosts, client: client)
    }
}
