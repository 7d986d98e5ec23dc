import EventLoopHTTP
import FCMModel
package import GatewayCore
import NIOCore

/// Keeps subscriptions by v1's own API or by the Instance ID API (V-TOPICS).
///
/// A legacy tenant's are kept by the Instance ID API. Those of a tenant that sends by the v1 protocol are kept by v1's,
/// unless the configuration or FCM itself says otherwise.
package final class TopicCaller: TopicUpstream {
    private let settings: UpstreamSettings
    private let pools: OriginPools
    private let accounts: V1Accounts
    private let exchange: TopicExchange
    private let memory = TopicAPIMemory()

    /// A caller over pools of connections.
    ///
    /// The owner of the pools shuts them down.
    package init(
        settings: UpstreamSettings,
        accounts: V1Accounts,
        pools: OriginPools,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics(),
        log: AttemptLog = AttemptLog()
    ) {
        self.settings = settings
        self.pools = pools
        self.accounts = accounts
        self.exchange = TopicExchange(
            attemptTimeout: settings.attemptTimeout,
            clock: clock,
            v1: AttemptRecorder(metrics: UpstreamMetrics(.v1Topics, metrics), log: log),
            instanceID: AttemptRecorder(metrics: UpstreamMetrics(.instanceID, metrics), log: log)
        )
    }

    /// Changes subscriptions, each device's by a call of its own or all by one.
    package func change(_ call: SubscriptionCall) async -> SubscriptionResult {
        switch self.route(for: call.profile, call.origin) {
        case .failure(let obstacle):
            return SubscriptionResult(obstacle.rejection, for: call, upstreamCode: obstacle.name)
        case .success(let route):
            if let failure = await Self.tokenFailure(route, until: call.deadline) {
                return Self.result(TopicReading(failure), call)
            }
            guard let account = route.account, self.prefersV1(account) else {
                return Self.result(await self.batch(call, call.tokens, by: route), call)
            }
            return await self.changeEach(call, by: route, account)
        }
    }

    /// Looks a device up by v1's own API, or by the Instance ID API where that knows more or alone is there.
    package func look(up call: RegistrationCall) async -> RegistrationResult {
        switch self.route(for: call.profile, call.origin) {
        case .failure(let obstacle):
            return RegistrationResult(.rejected(obstacle.rejection), upstreamCode: obstacle.name)
        case .success(let route):
            var reading: TopicReading?
            if call.part == .subscriptions, let account = route.account, self.prefersV1(account) {
                reading = await self.list(call, by: route, account)
            }
            if let answer = reading, answer.signal != .apiMissing { return Self.result(answer) }
            let info = await self.exchange.ask(
                InstanceIDRequest.info(call.token),
                .instanceID,
                by: route,
                until: call.deadline
            ) {
                InstanceIDResponseReader.info($0, now: $1)
            }
            return Self.result(info)
        }
    }

    // MARK: Before

    /// Why there is nothing to ask with or nowhere to ask.
    private struct Obstacle: Error {
        let rejection: Rejection
        let name: String

        init(_ obstacle: (code: OutcomeCode, name: String)) {
            self.init(rejection: Rejection(code: obstacle.code), name: obstacle.name)
        }

        init(rejection: Rejection, name: String) {
            self.rejection = rejection
            self.name = name
        }
    }

    private func route(for profile: TenantProfile, _ origin: RequestOrigin) -> Result<TopicRoute, Obstacle> {
        // A server that a credential names takes the place of all of Google's: the credential goes nowhere else.
        switch profile.tenant.upstream {
        case .legacy:
            guard let credential = profile.legacyCredential else { return .failure(self.noCredential(profile, origin)) }
            let endpoint = credential.endpoint ?? self.settings.configuration.iidEndpoint
            guard let pool = self.pools.pool(for: endpoint) else {
                return .failure(Obstacle(self.pools.obstacle(at: endpoint)))
            }
            let fields = LegacySender.request(ByteBuffer(), authorizedBy: credential).headers
            return .success(
                TopicRoute(profile: profile, authorization: .serverKey(fields), instanceID: pool, origin: origin)
            )
        case .v1:
            guard let credential = profile.v1Credential else { return .failure(self.noCredential(profile, origin)) }
            guard let account = self.accounts.account(of: profile, credential),
                let pool = self.pools.pool(for: credential.endpoint ?? self.settings.configuration.iidEndpoint)
            else { return .failure(Obstacle(self.accounts.obstacle(to: credential))) }
            return .success(
                TopicRoute(profile: profile, authorization: .account(account), instanceID: pool, origin: origin)
            )
        }
    }

    private func noCredential(_ profile: TenantProfile, _ origin: RequestOrigin) -> Obstacle {
        self.exchange.instanceID.log.missing("no_credential", profile.missingCredential, of: profile, origin)
        return Obstacle(rejection: Rejection(code: .upstreamCredentials), name: "no_credential")
    }

    private func prefersV1(_ account: V1Account) -> Bool {
        switch self.settings.configuration.topicAPI {
        case .instanceID: false
        case .v1: !self.memory.isMissing(for: account, at: .now)
        }
    }

    /// Why there is no access token, once for all calls: without one none of them can be made.
    private static func tokenFailure(
        _ route: TopicRoute,
        until deadline: ContinuousClock.Instant
    ) async -> TokenFailure? {
        guard let account = route.account else { return nil }
        return switch await account.tokens.token(until: deadline, in: route.origin.trace) {
        case .success: nil
        case .failure(let failure): failure
        }
    }

    // MARK: Changes

    private func batch(_ call: SubscriptionCall, _ tokens: [String], by route: TopicRoute) async -> TopicReading {
        let reading = await self.exchange.ask(
            InstanceIDRequest.batch(call.change, tokens, call.topic),
            .instanceID,
            by: route,
            until: call.deadline
        ) { InstanceIDResponseReader.batch($0, count: tokens.count, now: $1) }
        if reading.signal == .apiMissing, let account = route.account { self.memory.forget(account) }
        return reading
    }

    /// Makes a call for each device, some at a time, and asks the Instance ID API about those that v1's was not there for.
    private func changeEach(
        _ call: SubscriptionCall,
        by route: TopicRoute,
        _ account: V1Account
    ) async -> SubscriptionResult {
        let fanOut = TopicFanOut(count: call.tokens.count)
        let requests = V1TopicRequest(project: account.projectID)
        await withDiscardingTaskGroup { group in
            for _ in 0..<min(self.settings.configuration.fanOut, call.tokens.count) {
                group.addTask {
                    while !Task.isCancelled, ContinuousClock.now < call.deadline, let index = fanOut.next() {
                        let request = requests.change(call.change, call.tokens[index], call.topic)
                        let reading = await self.exchange.ask(request, .v1, by: route, until: call.deadline) {
                            V1TopicResponseReader.change($0, call.change, now: $1)
                        }
                        fanOut.finish(index, reading)
                    }
                }
            }
        }
        var readings = fanOut.readings()
        let missing = readings.indices.filter { readings[$0].signal == .apiMissing }
        if !missing.isEmpty {
            let reading = await self.batch(call, missing.map { call.tokens[$0] }, by: route)
            if missing.count == readings.count, case .changed(let outcomes) = reading.answer, outcomes.contains(.done) {
                self.memory.noteMiss(for: account, at: .now)
            }
            for (index, outcome) in zip(missing, reading.outcomes(count: missing.count)) {
                readings[index] = TopicReading(.changed([outcome]), upstreamCode: reading.upstreamCode)
            }
        }
        return SubscriptionResult(
            readings.map { $0.outcomes(count: 1).first ?? .rejected(.upstreamProtocol) },
            upstreamCode: readings.first { !$0.isDone }?.upstreamCode ?? readings.first?.upstreamCode ?? "none"
        )
    }

    private static func result(_ reading: TopicReading, _ call: SubscriptionCall) -> SubscriptionResult {
        SubscriptionResult(reading.outcomes(count: call.tokens.count), upstreamCode: reading.upstreamCode)
    }

    // MARK: Look-ups

    /// The most pages that are asked for: a device has 2,000 subscriptions at most.
    private static let maxPages = 20

    private func list(_ call: RegistrationCall, by route: TopicRoute, _ account: V1Account) async -> TopicReading {
        let requests = V1TopicRequest(project: account.projectID)
        var subscriptions: [TopicSubscription] = []
        var page: String?
        for _ in 0..<Self.maxPages {
            let request = requests.list(call.token, page: page)
            let reading = await self.exchange.ask(request, .v1, by: route, until: call.deadline) {
                V1TopicResponseReader.list($0, now: $1)
            }
            guard case .registration(let info, let next) = reading.answer else { return reading }
            subscriptions += info.subscriptions
            guard let next else {
                return TopicReading(
                    .registration(RegistrationInfo(subscriptions: subscriptions), nextPage: nil),
                    upstreamCode: reading.upstreamCode
                )
            }
            page = next
        }
        return TopicReading(rejected: .upstreamProtocol, upstreamCode: "endless_list")
    }

    private static func result(_ reading: TopicReading) -> RegistrationResult {
        let answer: RegistrationResult.Answer =
            switch reading.answer {
            case .registration(let info, _): .found(info)
            case .rejected(let rejection): .rejected(rejection)
            case .changed: .rejected(Rejection(code: .upstreamProtocol))
            }
        return RegistrationResult(answer, upstreamCode: reading.upstreamCode)
    }
}

extension TopicReading {
    /// Whether the one device of a call is as was asked for.
    fileprivate var isDone: Bool { self.answer == .changed([.done]) }
}
