import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// Makes single calls about subscriptions.
struct TopicExchange: Sendable {
    /// Reads an answer at a moment, in seconds since 1970.
    typealias Reader = (_ response: V1Response, _ now: Int) -> TopicReading

    /// How long one attempt may take.
    let attemptTimeout: DurationSetting
    let clock: any WallClock
    let v1: AttemptRecorder
    let instanceID: AttemptRecorder

    /// Makes one call, and once more where FCM refuses the access token (V-TOKEN).
    func ask(
        _ request: TopicRequest,
        _ api: TopicAPI,
        by route: TopicRoute,
        until deadline: ContinuousClock.Instant,
        read: Reader
    ) async -> TopicReading {
        switch route.authorization {
        case .serverKey(let headers):
            return await self.attempt(request, headers, api, by: route, repeats: 0, deadline, read)
        case .account(let account):
            let token: AccessToken
            switch await account.tokens.token(until: deadline, in: route.origin.trace) {
            case .success(let current): token = current
            case .failure(let failure): return TopicReading(failure)
            }
            let headers = token.headers(for: api)
            let reading = await self.attempt(request, headers, api, by: route, repeats: 0, deadline, read)
            guard reading.signal == .tokenRefused, account.tokens.refused(token) else { return reading }
            switch await account.tokens.token(until: deadline, in: route.origin.trace) {
            case .success(let fresh):
                let headers = fresh.headers(for: api)
                return await self.attempt(request, headers, api, by: route, repeats: 1, deadline, read)
            case .failure(let failure):
                return TopicReading(failure)
            }
        }
    }

    private func attempt(
        _ topicRequest: TopicRequest,
        _ headers: HTTPHeaderLines,
        _ api: TopicAPI,
        by route: TopicRoute,
        repeats: Int,
        _ deadline: ContinuousClock.Instant,
        _ read: Reader
    ) async -> TopicReading {
        let start = ContinuousClock.now
        let timeLeft = min(self.attemptTimeout.current, deadline - start)
        guard timeLeft > .zero else { return .notStarted }
        let pool = api == .v1 ? route.account?.pool ?? route.instanceID : route.instanceID
        let request = HTTPClientRequest(topicRequest, headers: headers)
        let attempts = api == .v1 ? self.v1 : self.instanceID
        let attempt = attempts.begin(
            at: start,
            in: route.origin.trace,
            request.method,
            topicRequest.template,
            repeats: repeats,
            route.subject(at: pool.origin)
        )
        do {
            let response = try await pool.execute(
                attempt.carried(by: request, for: route.profile),
                deadline: .now() + TimeAmount(timeLeft)
            )
            attempts.answered(attempt, status: response.status.code, route.subject(at: pool.origin))
            let answer = V1Response(
                status: response.status.code,
                retryAfter: response.fields[.retryAfter],
                body: response.body
            )
            return read(answer, self.clock.now().seconds)
        } catch {
            attempts.failed(attempt, error, route.subject(at: pool.origin))
            return TopicReading(error)
        }
    }
}

extension AccessToken {
    /// The fields of a call with this token.
    fileprivate func headers(for api: TopicAPI) -> HTTPHeaderLines {
        var headers = self.headers
        if api == .instanceID { headers.append(.accessTokenAuth, "true") }
        return headers
    }
}
