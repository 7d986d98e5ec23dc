import EventLoopHTTP
package import FCMModel
package import GatewayCore
import HTTPTypes
import NIOCore

/// Sends by HTTP v1: one `messages:send` for each recipient.
package final class V1Sender: UpstreamSender {
    private let settings: UpstreamSettings
    private let accounts: V1Accounts
    private let clock: any WallClock
    private let attempts: AttemptRecorder

    /// A sender over tenants' accounts.
    package init(
        settings: UpstreamSettings,
        accounts: V1Accounts,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics(),
        log: AttemptLog = AttemptLog()
    ) {
        self.settings = settings
        self.accounts = accounts
        self.clock = clock
        self.attempts = AttemptRecorder(metrics: UpstreamMetrics(.v1, metrics), log: log)
    }

    /// HTTP v1 has a form for every target; a condition must keep to its profile.
    package func refusal(of target: Target, for profile: TenantProfile) -> Refusal? {
        guard case .condition(let condition) = target, !condition.fits(.v1) else { return nil }
        return Refusal(.invalidField, "A condition names at most five topics", field: target.kind.rawValue)
    }

    /// Sends a message and reads the answers.
    package func send(_ call: UpstreamCall) async -> UpstreamResult {
        switch self.prepare(call) {
        case .failure(let obstacle):
            return UpstreamResult(answer: .failed(obstacle.outcome), upstreamCode: obstacle.name)
        case .success(let job):
            // Once for all calls of a list: without a token none of them can be made.
            if job.account.tokens.atHand() == nil,
                case .failure(let failure) = await job.account.tokens.token(until: job.deadline, in: call.trace)
            {
                return Self.result(failure)
            }
            guard job.kind.isList else { return await self.sendOne(job) }
            return await self.sendEach(job)
        }
    }

    // MARK: Before

    /// Why there is nothing to send or nowhere to send it.
    private struct Obstacle: Error {
        let outcome: OutcomeCode
        let name: String
    }

    @inline(never)  // What it needs for a moment would enlarge the frame of its async caller, which is allocated.
    private func prepare(_ call: UpstreamCall) -> Result<V1Job, Obstacle> {
        guard let credential = call.profile.v1Credential else {
            self.attempts.log.missing("no_credential", call.profile.missingCredential, of: call.profile, call.origin)
            return .failure(Obstacle(outcome: .upstreamCredentials, name: "no_credential"))
        }
        guard let account = self.accounts.account(of: call.profile, credential) else {
            let obstacle = self.accounts.obstacle(to: credential)
            return .failure(Obstacle(outcome: obstacle.code, name: obstacle.name))
        }
        return .success(
            V1Job(
                account: account,
                calls: V1Calls(call.message, to: call.target, now: self.clock.now().seconds),
                kind: call.target.kind,
                keepsAnswer: call.message.verbatim != nil,
                call: call
            )
        )
    }

    private static func result(_ failure: TokenFailure) -> UpstreamResult {
        UpstreamResult(
            answer: .failed(failure.outcomeCode),
            retryAfter: failure.kind == .unreachable ? failure.retryAfter : nil,
            upstreamCode: failure.code
        )
    }

    // MARK: Calls

    private func sendOne(_ job: V1Job) async -> UpstreamResult {
        UpstreamResult(await self.deliver(job, at: 0))
    }

    /// Makes the calls of a list, some at a time: a few workers take one after the other, which costs less than a task
    /// for each.
    private func sendEach(_ job: V1Job) async -> UpstreamResult {
        let fanOut = FanOut(count: job.calls.count, notStarted: V1Reading.notStarted)
        await withDiscardingTaskGroup { group in
            for _ in 0..<min(self.settings.configuration.fanOut, job.calls.count) {
                group.addTask { await self.work(on: job, fanOut) }
            }
        }
        return UpstreamResult(gathering: fanOut.readings())
    }

    private func work(on job: V1Job, _ fanOut: FanOut<V1Reading>) async {
        while !Task.isCancelled, ContinuousClock.now < job.deadline, let index = fanOut.next() {
            if let gate = job.gate, !(await gate.pass(index)) {
                fanOut.finish(index, .notKept, holdsForAll: true)
                return
            }
            let reading = await self.deliver(job, at: index)
            job.gate?.finish(index, reading.outcome)
            fanOut.finish(index, reading, holdsForAll: reading.signal.holdsForAll)
        }
    }

    /// Makes one call, and once more where FCM refuses the access token (V-TOKEN).
    private func deliver(_ job: V1Job, at index: Int) async -> V1Reading {
        guard let token = job.account.tokens.atHand() else { return await self.deliverLater(job, at: index) }
        let reading = await self.attempt(job, at: index, with: token)
        guard reading.signal == .tokenRefused else { return reading }
        guard job.account.tokens.refused(token) else { return self.refused(job, reading) }
        return self.refused(job, await self.deliverLater(job, at: index))
    }

    /// Tells the credential's breaker of a token that no other mends.
    private func refused(_ job: V1Job, _ reading: V1Reading) -> V1Reading {
        if reading.signal == .tokenRefused {
            job.account.health.report(server: .silent, credential: .trouble, at: .now)
        }
        return reading
    }

    /// Waits for an access token and makes one call with it.
    private func deliverLater(_ job: V1Job, at index: Int) async -> V1Reading {
        switch await job.account.tokens.token(until: job.deadline, in: job.call.trace) {
        case .success(let token): await self.attempt(job, at: index, with: token)
        case .failure(let failure): V1Reading(failure)
        }
    }

    /// Makes one call, and again at once where nothing of it left; what FCM is too busy for is the caller's to repeat,
    /// since it asks for ten seconds at least.
    private func attempt(_ job: V1Job, at index: Int, with token: AccessToken) async -> V1Reading {
        if let obstacle = job.account.health.begin(at: .now) { return V1Reading(obstacle) }
        var attempts = 0
        while true {
            attempts += 1
            let start = ContinuousClock.now
            let fullTime = self.settings.attemptTimeout.current
            let timeLeft = min(fullTime, job.deadline - start)
            guard timeLeft > .zero else {
                job.account.health.report(server: .silent, credential: .silent, at: start)
                return .notStarted
            }
            let attempt = self.begin(job, at: start, repeats: attempts - 1)
            do {
                let response = try await job.account.pool.execute(
                    Self.request(job, at: index, with: token, attempt),
                    deadline: .now() + TimeAmount(timeLeft)
                )
                return self.end(of: job, response, attempt)
            } catch {
                self.noteFailure(of: job, error, attempt, hadFullTime: timeLeft == fullTime)
                guard error.isWorthRepeating, attempts < Backoff.maxAttempts,
                    job.account.health.mayRepeat(for: .notSent, at: .now)
                else { return V1Reading(error) }
            }
        }
    }

    @inline(never)  // As for `prepare`.
    private func begin(
        _ job: V1Job,
        at start: ContinuousClock.Instant,
        repeats: Int
    ) -> AttemptRecorder.Attempt {
        self.attempts.begin(
            at: start,
            in: job.call.trace,
            .post,
            V1Path.sendTemplate,
            repeats: repeats,
            job.subject
        )
    }

    @inline(never)  // As for `prepare`.
    private func end(
        of job: V1Job,
        _ response: HTTPClientResponse,
        _ attempt: AttemptRecorder.Attempt
    ) -> V1Reading {
        let now = self.attempts.answered(attempt, status: response.status.code, job.subject)
        let reading = self.read(response, for: job)
        let health = job.account.health
        switch reading.signal {
        case .trouble: health.report(server: .trouble, credential: .silent, at: now)
        case .credentialRefused: health.report(server: .healthy, credential: .trouble, at: now)
        // Another token may mend it.
        case .tokenRefused: health.report(server: .healthy, credential: .silent, at: now)
        case .none, .targetQuota, .projectQuota: health.report(server: .healthy, credential: .healthy, at: now)
        }
        if reading.signal == .projectQuota { health.pause(for: reading.quotaPause, at: now) }
        return reading
    }

    @inline(never)  // As for `prepare`.
    private func noteFailure(
        of job: V1Job,
        _ error: HTTPClientError,
        _ attempt: AttemptRecorder.Attempt,
        hadFullTime: Bool
    ) {
        let now = self.attempts.failed(attempt, error, job.subject)
        job.account.health.report(server: error.verdict(hadFullTime: hadFullTime), credential: .silent, at: now)
    }

    @inline(never)  // As for `prepare`.
    private static func request(
        _ job: V1Job,
        at index: Int,
        with token: AccessToken,
        _ attempt: AttemptRecorder.Attempt
    ) -> HTTPClientRequest {
        attempt.carried(
            by: HTTPClientRequest(
                method: .post,
                path: job.account.path,
                headers: token.headers,
                body: job.calls.body(at: index)
            ),
            for: job.call.profile
        )
    }

    @inline(never)  // As for `prepare`.
    private func read(_ response: HTTPClientResponse, for job: V1Job) -> V1Reading {
        V1ResponseReader.read(
            V1Response(
                status: response.status.code,
                retryAfter: response.fields[.retryAfter],
                contentType: response.fields[.contentType],
                body: response.body
            ),
            for: job.kind,
            mayBeGroup: job.call.mayBeGroup,
            now: self.clock.now().seconds,
            keepsAnswer: job.keepsAnswer,
            isIdempotent: job.gate != nil
        )
    }
}

extension V1Reading {
    /// How long a project whose quota is used up is left alone, in seconds: as FCM says, or a minute.
    fileprivate var quotaPause: Int {
        guard case .rejected(let rejection) = self.answer, let delay = rejection.retryAfter else { return 60 }
        return min(max(delay, 10), 3_600)
    }
}

extension V1Reading.Signal {
    /// Whether the answer is about the credential or the project, hence the same for every recipient.
    fileprivate var holdsForAll: Bool {
        switch self {
        case .tokenRefused, .credentialRefused, .projectQuota: true
        case .none, .targetQuota, .trouble: false
        }
    }
}

extension TargetKind {
    /// Whether the answer is a list of outcomes, even for one recipient.
    fileprivate var isList: Bool {
        switch self {
        case .tokens, .installations: true
        case .token, .installation, .topic, .condition, .group: false
        }
    }
}
