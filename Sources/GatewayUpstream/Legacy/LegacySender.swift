import EventLoopHTTP
package import FCMModel
package import GatewayCore
import HTTPTypes
import NIOCore

/// Sends by the legacy protocol: one `POST /fcm/send` for each call.
package final class LegacySender: UpstreamSender {
    private static let path = "/fcm/send"
    private static let keyScheme = Array("key=".utf8)
    private static let mediaType = Array("application/json".utf8)

    private let settings: UpstreamSettings
    private let pools: OriginPools
    private let clock: any WallClock
    private let attempts: AttemptRecorder
    private let healths: UpstreamHealths

    /// A sender over pools of connections.
    package init(
        settings: UpstreamSettings,
        pools: OriginPools,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics(),
        log: AttemptLog = AttemptLog()
    ) {
        self.settings = settings
        self.pools = pools
        self.clock = clock
        self.attempts = AttemptRecorder(metrics: UpstreamMetrics(.legacy, metrics), log: log)
        self.healths = UpstreamHealths(metrics: metrics)
    }

    /// Forgets what is known of the ways of all but these tenants.
    package func keep(_ tenants: [TenantID: TenantProfile]) {
        self.healths.keep(tenants)
    }

    /// The legacy protocol knows no installation ids, no negation and at most two operators in a condition.
    package func refusal(of target: Target, for profile: TenantProfile) -> Refusal? {
        switch target {
        case .token, .tokens, .topic, .notificationKey:
            nil
        case .installation, .installations:
            Refusal(
                .invalidTarget,
                "This tenant sends by the legacy protocol, which knows registration tokens only",
                field: target.kind.rawValue
            )
        case .condition(let condition):
            condition.fits(.legacy)
                ? nil
                : Refusal(
                    .invalidField,
                    "This tenant sends by the legacy protocol: at most two operators and no negation",
                    field: target.kind.rawValue
                )
        }
    }

    /// Sends a message and reads the answer; repeats what did not arrive, or what FCM was too busy for.
    package func send(_ call: UpstreamCall) async -> UpstreamResult {
        switch self.prepare(call) {
        case .failure(let obstacle):
            return obstacle.result
        case .success(let plan):
            let end = await self.attempt(plan, call, repeats: 0)
            guard let reason = end.repeatReason else { return end.result }
            return await self.repeated(plan, call, end.result, reason)
        }
    }

    // MARK: Before

    /// A request, where it goes, and what is known of the way.
    private struct Plan {
        let pool: HTTPClientPool
        let request: HTTPClientRequest
        let health: UpstreamHealth
    }

    /// Why there is nothing to send or nowhere to send it.
    private struct Obstacle: Error {
        let result: UpstreamResult

        init(_ code: OutcomeCode, _ name: String, retryAfter: Int? = nil) {
            self.result = UpstreamResult(answer: .failed(code), retryAfter: retryAfter, upstreamCode: name)
        }
    }

    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func prepare(_ call: UpstreamCall) -> Result<Plan, Obstacle> {
        guard let credential = call.profile.legacyCredential else {
            self.attempts.log.missing("no_credential", call.profile.missingCredential, of: call.profile, call.origin)
            return .failure(Obstacle(.upstreamCredentials, "no_credential"))
        }
        let endpoint = credential.endpoint ?? self.settings.configuration.legacyEndpoint
        guard let pool = self.pools.pool(for: endpoint) else {
            let obstacle = self.pools.obstacle(at: endpoint)
            return .failure(Obstacle(obstacle.code, obstacle.name))
        }
        guard let body = try? LegacyRequestEncoder.encode(call.message, to: call.target) else {
            return .failure(Obstacle(.invalidTarget, "inexpressible"))
        }
        let health = self.healths.health(of: call.profile)
        if let obstacle = health.begin(at: .now) {
            return .failure(Obstacle(obstacle.code, obstacle.upstreamCode, retryAfter: obstacle.retryAfter))
        }
        var request = Self.request(body, authorizedBy: credential)
        request.maxResponseBodyBytes = Target.maxAnswerBytes(recipients: call.target.recipientCount)
        return .success(Plan(pool: pool, request: request, health: health))
    }

    // MARK: Attempts

    /// What a server answers with that was too busy, or failed before it took the message; 200 with an error's name.
    private static let repeatableStatuses = [200, 500, 503]

    /// What one attempt came to.
    private struct AttemptEnd {
        let result: UpstreamResult
        /// Why it may be made once more; `nil` where it must not.
        let repeatReason: RepeatReason?
    }

    private func attempt(_ plan: Plan, _ call: UpstreamCall, repeats: Int) async -> AttemptEnd {
        let start = ContinuousClock.now
        let fullTime = self.settings.attemptTimeout.current
        let timeLeft = min(fullTime, call.deadline - start)
        guard timeLeft > .zero else {
            plan.health.report(server: .silent, credential: .silent, at: start)
            return AttemptEnd(result: Obstacle(.upstreamUnavailable, "not_started").result, repeatReason: nil)
        }
        let attempt = self.begin(plan, call, at: start, repeats: repeats)
        do {
            let response = try await plan.pool.execute(
                attempt.carried(by: plan.request, for: call.profile),
                deadline: .now() + TimeAmount(timeLeft)
            )
            return self.end(of: plan, call, response, attempt)
        } catch {
            return self.end(of: plan, call, error, attempt, hadFullTime: timeLeft == fullTime)
        }
    }

    @inline(never)  // As for `prepare`.
    private func begin(
        _ plan: Plan,
        _ call: UpstreamCall,
        at start: ContinuousClock.Instant,
        repeats: Int
    ) -> AttemptRecorder.Attempt {
        self.attempts.begin(
            at: start,
            in: call.trace,
            .post,
            Self.path,
            repeats: repeats,
            Self.subject(plan, call)
        )
    }

    @inline(never)  // As for `prepare`.
    private func end(
        of plan: Plan,
        _ call: UpstreamCall,
        _ response: HTTPClientResponse,
        _ attempt: AttemptRecorder.Attempt
    ) -> AttemptEnd {
        let now = self.attempts.answered(attempt, status: response.status.code, Self.subject(plan, call))
        let result = self.read(response, for: call)
        let isFailure = [.upstreamUnavailable, .upstreamInternal, .outcomeUnknown]
            .contains { result.answer == .failed($0) }
        let isRefusal = result.answer == .failed(.upstreamCredentials)
        // Too many requests are no fault of the server's.
        let isExcess = response.status == .tooManyRequests
        plan.health.report(
            server: isExcess ? .silent : isFailure ? .trouble : .healthy,
            credential: isRefusal ? .trouble : isFailure ? .silent : .healthy,
            at: now
        )
        // A proxy's 502 or 504 may stand for a message that arrived.
        let mayRepeat = isFailure && Self.repeatableStatuses.contains(response.status.code)
        return AttemptEnd(result: result, repeatReason: mayRepeat ? .trouble : nil)
    }

    @inline(never)  // As for `prepare`.
    private func end(
        of plan: Plan,
        _ call: UpstreamCall,
        _ error: HTTPClientError,
        _ attempt: AttemptRecorder.Attempt,
        hadFullTime: Bool
    ) -> AttemptEnd {
        let now = self.attempts.failed(attempt, error, Self.subject(plan, call))
        plan.health.report(server: error.verdict(hadFullTime: hadFullTime), credential: .silent, at: now)
        return AttemptEnd(
            result: UpstreamResult(answer: .failed(error.outcomeCode), upstreamCode: error.code.rawValue),
            repeatReason: error.isWorthRepeating ? .notSent : nil
        )
    }

    private static func subject(_ plan: Plan, _ call: UpstreamCall) -> AttemptRecorder.Subject {
        AttemptRecorder.Subject(server: plan.pool.origin, profile: call.profile, origin: call.origin)
    }

    /// Goes on after a first attempt that may be repeated.
    private func repeated(
        _ plan: Plan,
        _ call: UpstreamCall,
        _ first: UpstreamResult,
        _ reason: RepeatReason
    ) async -> UpstreamResult {
        var (result, reason) = (first, reason)
        for attempts in 1..<Backoff.maxAttempts {
            let wait = Backoff.wait(after: attempts, for: reason, retryAfter: result.retryAfter)
            guard .now + wait < call.deadline else { return result }
            if wait > .zero {
                guard plan.health.mightRepeat(for: reason), (try? await self.settings.pause(wait)) != nil else {
                    return result
                }
            }
            // Not before the wait: what is known of the server then decides, and nobody else goes without meanwhile.
            guard plan.health.mayRepeat(for: reason, at: .now) else { return result }
            let end = await self.attempt(plan, call, repeats: attempts)
            result = end.result
            guard let next = end.repeatReason else { return result }
            reason = next
        }
        return result
    }

    /// The request that carries a body.
    static func request(_ body: ByteBuffer, authorizedBy credential: LegacyCredential) -> HTTPClientRequest {
        var headers = HTTPHeaderLines()
        headers.append(.authorization, Self.keyScheme + credential.serverKey.revealBytes())
        headers.append(.contentType, Self.mediaType)
        return HTTPClientRequest(method: .post, path: Self.path, headers: headers, body: body)
    }

    @inline(never)  // As for `prepare`.
    private func read(_ response: HTTPClientResponse, for call: UpstreamCall) -> UpstreamResult {
        LegacyResponseReader.read(
            LegacyResponse(
                status: response.status.code,
                retryAfter: response.fields[.retryAfter],
                body: response.body
            ),
            for: call.target,
            now: self.clock.now().seconds,
            isIdempotent: call.gate != nil
        )
    }
}
