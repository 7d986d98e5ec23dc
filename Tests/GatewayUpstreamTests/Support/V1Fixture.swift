import CoreMetrics
import FCMEmulator
import FCMModel
import Foundation
import GatewayCore
import GatewayTestKit
import Logging
import ServiceLifecycle

@testable import GatewayUpstream

/// An emulator with one service account, and a client of it.
struct V1Fixture: Sendable {
    static let projectID = "demo-project"
    /// One key for all tests, since generating a key is slow.
    private static let account = Result {
        try ServiceAccountFile(making: Self.projectID, tokenURI: "http://127.0.0.1/token")
    }

    let emulator: FCMEmulator
    /// The clock of assertions, access tokens and their lifetimes.
    let clock: ManualClock
    let endpoint: String
    let file: ServiceAccountFile
    let credential: V1Credential
    let client: FCMClient

    /// Runs a body, then shuts everything down; the emulator's clock is `skewSeconds` ahead.
    static func run(
        emulator settings: EmulatorConfiguration = EmulatorConfiguration(port: 0),
        skewSeconds: TimeInterval = 0,
        fanOut: Int = 100,
        topicAPI: TopicAPI = .v1,
        allowsTokenHost: Bool = true,
        metrics: any MetricsFactory = NOOPMetricsHandler.instance,
        log: AttemptRecorder.Log = AttemptRecorder.Log(),
        _ body: (V1Fixture) async throws -> Void
    ) async throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let metrics = GatewayMetrics(factory: metrics)
        let clock = ManualClock(at: SystemWallClock().now())
        let emulator = FCMEmulator(configuration: settings, logger: logger) {
            Date(timeIntervalSince1970: Double(clock.now().microseconds) / 1_000_000 + skewSeconds)
        }
        try await Self.whileRunning(emulator, logger: logger) {
            let endpoint = try await emulator.baseURL()
            var file = try Self.account.get()
            file.tokenURI = endpoint + "/token"
            try emulator.addServiceAccount(file)
            let hosts = TokenHosts([String(endpoint.dropFirst("http://".count))])
            let upstream = UpstreamSettings.sample(tokenHosts: allowsTokenHost ? hosts : .google) {
                $0.v1Endpoint = endpoint
                $0.iidEndpoint = endpoint
                $0.topicAPI = topicAPI
                $0.fanOut = fanOut
            }
            let pools = OriginPools.sample()
            let exchange = GoogleTokens(settings: upstream, pools: pools, clock: clock)
            let (start, origin) = (Uptime.now, clock.now())
            let tokens = AccessTokens(exchange: exchange, metrics: metrics) {
                start.advanced(by: .microseconds(clock.now().microseconds - origin.microseconds))
            }
            try await Self.whileRunning(tokens, logger: logger) {
                let client = FCMClient(
                    settings: upstream,
                    pools: pools,
                    exchange: exchange,
                    tokens: tokens,
                    clock: clock,
                    metrics: metrics,
                    log: log
                )
                let json = Array(file.json.utf8)
                let fixture = V1Fixture(
                    emulator: emulator,
                    clock: clock,
                    endpoint: endpoint,
                    file: file,
                    credential: try V1Credential(serviceAccount: json, endpoint: nil, allowing: hosts),
                    client: client
                )
                let result = await Result { try await body(fixture) }
                await client.shutdown()
                try result.get()
            }
        }
    }

    /// A service account whose tokens come from the emulator.
    func serviceAccount(_ json: [UInt8], endpoint: String? = nil) throws -> V1Credential {
        let hosts = TokenHosts([String(self.endpoint.dropFirst("http://".count))])
        return try V1Credential(serviceAccount: json, endpoint: endpoint, allowing: hosts)
    }

    /// A tenant that sends by the v1 protocol.
    func tenant(projectID: String? = nil) throws -> Tenant {
        var tenant = try Tenant.sample()
        tenant.upstream = .v1
        tenant.projectID = projectID
        return tenant
    }

    /// A call for a tenant with the account.
    func call(
        to target: Target = .token("device"),
        message: Message = Message(),
        projectID: String? = nil,
        credential: V1Credential? = nil,
        timeLeft: Duration = .seconds(600),
        trace: RequestTrace? = nil
    ) throws -> UpstreamCall {
        try .sample(
            of: self.tenant(projectID: projectID),
            to: target,
            message: message,
            credential: nil,
            v1Credential: credential ?? self.credential,
            timeLeft: timeLeft,
            trace: trace
        )
    }

    /// Sends for a tenant with the account.
    func send(
        to target: Target = .token("device"),
        message: Message = Message(),
        projectID: String? = nil,
        credential: V1Credential? = nil,
        timeLeft: Duration = .seconds(600)
    ) async throws -> SendResult {
        let call = try self.call(
            to: target,
            message: message,
            projectID: projectID,
            credential: credential,
            timeLeft: timeLeft
        )
        return await self.client.send(call)
    }

    /// The requests for access tokens so far, oldest first.
    var tokenRequests: [JournalEntry] {
        self.emulator.journal().filter { $0.path == "/token" }.reversed()
    }

    /// The messages so far, oldest first.
    var messages: [JournalEntry] {
        self.emulator.journal().filter { $0.path.hasSuffix("messages:send") }.reversed()
    }

    private static func whileRunning(
        _ service: any Service,
        logger: Logger,
        _ body: () async throws -> Void
    ) async throws {
        let services = ServiceGroup(configuration: ServiceGroupConfiguration(services: [service], logger: logger))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            let result = await Result { try await body() }
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
            try result.get()
        }
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
