import EventLoopHTTP
package import FCMModel
package import GatewayCore
import HTTPTypes
package import Logging
package import NIOCore

/// The gateway's one client of FCM: sends by both protocols, subscriptions, device groups and credential checks.
///
/// Every call of every API passes through ``perform(_:)``: authorisation, breaker, attempts, retries. An ``FCMCall``
/// holds what differs: the request, and the meaning of the answer.
package final class FCMClient: Sendable {
    let settings: UpstreamSettings
    let pools: OriginPools
    let accounts: FCMAccounts
    let exchange: any TokenExchange
    let clock: any WallClock
    let log: AttemptRecorder.Log
    private let recorders: [AttemptRecorder]
    /// Gets access tokens. It must run, or calls by service accounts time out.
    package let tokens: AccessTokens

    init(
        settings: UpstreamSettings,
        pools: OriginPools,
        exchange: any TokenExchange,
        tokens: AccessTokens,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics(),
        log: AttemptRecorder.Log = AttemptRecorder.Log()
    ) {
        self.settings = settings
        self.pools = pools
        self.exchange = exchange
        self.tokens = tokens
        self.clock = clock
        self.log = log
        let resilience = UpstreamHealth.Metrics(metrics)
        self.accounts = FCMAccounts(settings: settings, pools: pools, tokens: tokens, metrics: resilience)
        self.recorders = FCMAPI.allCases.map {
            AttemptRecorder(metrics: AttemptRecorder.Metrics($0, metrics), log: log)
        }
    }

    /// Creates a client whose connections live on the loops of a group.
    package convenience init(
        settings: UpstreamSettings,
        eventLoopGroup: any EventLoopGroup,
        clock: any WallClock,
        metrics: GatewayMetrics,
        logger: Logger
    ) {
        // One pool per server, whatever its calls are for, so that FCM sees as few connections as possible.
        let pools = OriginPools(
            configuration: settings.client,
            plainHTTP: settings.tokenHosts.current.plainHTTP,
            eventLoopGroup: eventLoopGroup,
            logger: logger
        )
        let exchange = GoogleTokens(settings: settings, pools: pools, clock: clock, logger: logger)
        self.init(
            settings: settings,
            pools: pools,
            exchange: exchange,
            tokens: AccessTokens(exchange: exchange, metrics: metrics),
            clock: clock,
            metrics: metrics,
            log: AttemptRecorder.Log(logger)
        )
    }

    /// Drops the accounts of all other tenants, and the pools of servers that no tenant needs. Must not be called on an event
    /// loop.
    package func keep(_ tenants: [TenantID: TenantProfile]) {
        self.accounts.keep(tenants)
        let configuration = self.settings.configuration
        var endpoints: Set = [configuration.legacyEndpoint, configuration.v1Endpoint, configuration.iidEndpoint]
        let metadata = self.settings.tokenHosts.current.metadataServer.flatMap { TokenURI("http://\($0)") }
        var tokenOrigins = Set([metadata?.origin].compactMap(\.self))
        // A gateway without tenants needs no TLS yet.
        if !tenants.isEmpty { self.pools.prepareTLS() }
        for profile in tenants.values {
            if let endpoint = profile.legacyCredential?.endpoint { endpoints.insert(endpoint) }
            guard let credential = profile.v1Credential else { continue }
            if let endpoint = credential.endpoint { endpoints.insert(endpoint) }
            tokenOrigins.formUnion(credential.source.addresses.map(\.origin))
        }
        self.pools.keep(endpoints, tokenOrigins: tokenOrigins)
    }

    /// Stops a tenant's messages for a time, because another replica has found its project's quota used up.
    package func pause(_ profile: TenantProfile, for time: Duration) {
        let account = try? self.accounts.account(of: profile, profile.tenant.upstream)
        account?.pause(for: time, at: .now)
    }

    package func shutdown() async {
        await self.pools.shutdown()
    }

    func account(
        of profile: TenantProfile,
        by kind: UpstreamKind,
        _ origin: RequestOrigin
    ) throws(CallFailure) -> FCMAccount {
        if let account = try self.accounts.account(of: profile, kind) { return account }
        throw self.missing("no_credential", profile.missingCredential, of: profile, origin)
    }

    /// Logs what an operator must provide before calls can be made.
    func missing(_ cause: String, _ text: String?, of profile: TenantProfile, _ origin: RequestOrigin) -> CallFailure {
        self.log.missing(cause, text, of: profile, origin)
        return CallFailure(code: .upstreamCredentials, upstreamCode: cause, text: text)
    }

    // MARK: Calls

    /// Makes a call, with its retries.
    ///
    /// - A request that did not leave the gateway is sent again at once.
    /// - After ``AnswerSign/busy(retryAfter:)`` it is sent again after a wait, within the retry budget and the caller's
    ///   time.
    /// - After a refused access token it is sent once more with another token.
    func perform<Call: FCMCall>(_ call: Call) async -> Call.Reading {
        let context = call.context
        if let authorization = context.authorizer.current { return await self.perform(call, authorization) }
        switch await context.authorizer.authorization(until: context.deadline, in: context.origin.trace) {
        case .success(let authorization): return await self.perform(call, authorization)
        case .failure(let failure): return call.unanswered(CallFailure(failure))
        }
    }

    private func perform<Call: FCMCall>(_ call: Call, _ authorization: Authorization) async -> Call.Reading {
        if let failure = call.context.refusal(at: .now) { return call.unanswered(failure) }
        let end = await self.attempt(call, authorization, retries: 0)
        guard let next = end.next else { return end.reading }
        return await self.goOn(with: call, authorization, after: end.reading, next)
    }

    private func goOn<Call: FCMCall>(
        with call: Call,
        _ first: Authorization,
        after reading: Call.Reading,
        _ next: Next
    ) async -> Call.Reading {
        let context = call.context
        var (authorization, reading, next) = (first, reading, Optional(next))
        var attempts = 1
        var isReplacement = false
        while let step = next {
            switch step {
            case .authorizeAgain:
                guard !isReplacement, context.authorizer.refused(authorization) else {
                    // Another token would not help.
                    context.health.report(server: .silent, credential: .trouble, at: .now)
                    return reading
                }
                isReplacement = true
                switch await context.authorizer.authorization(until: context.deadline, in: context.origin.trace) {
                case .success(let other): authorization = other
                case .failure(let failure): return call.unanswered(CallFailure(failure))
                }
                if let failure = context.refusal(at: .now) { return call.unanswered(failure) }
            case .retry(let reason, let retryAfter):
                guard attempts < Backoff.maxAttempts else { return reading }
                let wait = Backoff.wait(after: attempts, for: reason, retryAfter: retryAfter)
                guard .now + wait < context.deadline else { return reading }
                if wait > .zero {
                    guard context.health.mightRetry(for: reason), (try? await self.settings.pause(wait)) != nil
                    else { return reading }
                }
                // Checked after the wait: the breaker then knows more, and meanwhile the budget serves other calls.
                guard context.health.mayRetry(for: reason, at: .now) else { return reading }
            }
            let end = await self.attempt(call, authorization, retries: attempts)
            (reading, next) = (end.reading, end.next)
            attempts += 1
        }
        return reading
    }

    // MARK: One attempt

    private enum Next {
        case authorizeAgain
        case retry(RetryReason, retryAfter: Int?)
    }

    /// An attempt's result, and the next step; `nil` if it was the last attempt.
    private typealias AttemptEnd<Reading> = (reading: Reading, next: Next?)

    private func attempt<Call: FCMCall>(
        _ call: Call,
        _ authorization: Authorization,
        retries: Int
    ) async -> AttemptEnd<Call.Reading> {
        // In this order, so that a pause from here on shortens the remaining time.
        let (asked, start) = (NIODeadline.now(), Uptime.now)
        let fullTime = self.settings.attemptTimeout.current
        let timeLeft = min(fullTime, call.context.deadline - start)
        guard timeLeft > .zero else {
            call.context.health.report(server: .silent, credential: .silent, at: start)
            return (call.unanswered(.notStarted), nil)
        }
        if let reservation = call.context.reservation, !reservation.mayCall(within: timeLeft) {
            // Another replica may be about to settle the send.
            call.context.health.report(server: .silent, credential: .silent, at: start)
            return (call.unanswered(.notStarted), nil)
        }
        let (request, attempt) = self.begin(call, authorization, at: start, retries: retries)
        do {
            let response = try await call.context.pool.execute(
                request,
                deadline: asked + .nanoseconds(timeLeft.nanoseconds)
            )
            return self.end(of: call, response, attempt)
        } catch {
            return self.end(of: call, error, attempt, hadFullTime: timeLeft == fullTime)
        }
    }

    @inline(never)  // Keeps the frame small.
    private func begin<Call: FCMCall>(
        _ call: Call,
        _ authorization: Authorization,
        at start: Uptime,
        retries: Int
    ) -> (HTTPClientRequest, AttemptRecorder.Attempt) {
        var request = call.request(authorizedBy: authorization)
        let attempt = self.recorders[call.context.api.rawValue]
            .begin(&request, of: call.route, call.context, at: start, retries: retries)
        return (request, attempt)
    }

    @inline(never)  // Keeps the frame small.
    private func end<Call: FCMCall>(
        of call: Call,
        _ response: HTTPClientResponse,
        _ attempt: AttemptRecorder.Attempt
    ) -> AttemptEnd<Call.Reading> {
        let context = call.context
        let now = self.recorders[context.api.rawValue].answered(attempt, status: response.status.code, context)
        let (reading, sign) = call.read(response, now: self.clock.now().seconds)
        let (server, credential) = sign.verdicts
        context.health.report(server: server, credential: credential, at: now)
        switch sign {
        case .tokenRefused:
            return (reading, .authorizeAgain)
        case .busy(let retryAfter):
            return (reading, .retry(.trouble, retryAfter: retryAfter))
        case .quotaExhausted(let pause):
            context.health.pause(for: .seconds(pause), at: now)
            return (reading, nil)
        case .well, .trouble, .excess, .credentialRefused:
            return (reading, nil)
        }
    }

    @inline(never)  // Keeps the frame small.
    private func end<Call: FCMCall>(
        of call: Call,
        _ error: HTTPClientError,
        _ attempt: AttemptRecorder.Attempt,
        hadFullTime: Bool
    ) -> AttemptEnd<Call.Reading> {
        let context = call.context
        let now = self.recorders[context.api.rawValue].failed(attempt, error, context)
        let (_, verdict, isWorthRetrying) = error.meaning
        // If the caller left less than an attempt's full time, the timeout says nothing about the server.
        let isEarly = error.code == .deadlineExceeded && !hadFullTime
        context.health.report(server: isEarly ? .silent : verdict, credential: .silent, at: now)
        return (call.unanswered(CallFailure(error)), isWorthRetrying ? .retry(.notSent, retryAfter: nil) : nil)
    }
}

extension FCMClient: UpstreamSender {
    package func refusal(of target: Target, for profile: TenantProfile) -> Refusal? {
        switch profile.tenant.upstream {
        case .legacy: Self.legacyRefusal(of: target)
        case .v1: Self.v1Refusal(of: target)
        }
    }

    package func requests(of call: UpstreamCall, limit: Int) -> [Message.Request] {
        let kind = call.profile.tenant.upstream
        guard let origin = HTTPOrigin(self.settings.configuration.endpoint(for: call.profile, by: kind)) else {
            return []
        }
        let requests =
            switch kind {
            case .legacy: self.legacyRequests(of: call)
            case .v1: self.v1Requests(of: call, limit: limit)
            }
        return requests.map { Message.Request($0, to: origin) }
    }

    package func send(_ call: UpstreamCall) async -> SendResult {
        switch call.profile.tenant.upstream {
        case .legacy: await self.sendByLegacy(call)
        case .v1: await self.sendByV1(call)
        }
    }
}

extension Message.Request {
    fileprivate init(_ request: HTTPClientRequest, to origin: HTTPOrigin) {
        self.init(
            method: request.method.rawValue,
            url: "\(origin.scheme.rawValue)://\(origin.authority)\(request.path)",
            fields: request.headers.fields.map { ($0.name.rawName, $0.value) },
            body: request.body
        )
    }
}

extension SendResult {
    /// A call that failed as a whole, without an answer.
    init(_ failure: CallFailure) {
        self.init(refused: failure.code, retryAfter: failure.retryAfter, upstreamCode: failure.upstreamCode)
    }
}
