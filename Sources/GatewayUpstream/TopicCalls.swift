import EventLoopHTTP
import FCMModel
package import GatewayCore
import HTTPTypes

/// Subscriptions by v1's own API or by the Instance ID API (V-TOPICS).
///
/// The Instance ID API serves legacy tenants. V1's own API serves tenants that send by the v1 protocol, unless the
/// configuration or FCM itself says otherwise. Only v1's own API knows installation ids.
extension FCMClient: TopicUpstream {
    package func change(_ call: SubscriptionCall) async -> SubscriptionResult {
        do throws(CallFailure) {
            let route = try self.route(for: call.profile, call.origin, call.deadline)
            // Checked once for all calls: without a token none of them can be made.
            if let failure = await route.instanceID.missingToken() { throw failure }
            guard let v1 = route.v1 else {
                guard call.kind == .token else { return SubscriptionResult(.tokensOnly, call) }
                return SubscriptionResult(await self.changeAll(call, call.tokens, by: route), call)
            }
            return await self.changeEach(call, by: route, v1)
        } catch {
            return SubscriptionResult(TopicReading(error), call)
        }
    }

    /// Looks a device up by v1's own API, or by the Instance ID API if that knows more or is the only one.
    package func lookUp(_ call: RegistrationCall) async -> RegistrationResult {
        do throws(CallFailure) {
            let route = try self.route(for: call.profile, call.origin, call.deadline)
            if call.part == .subscriptions, let v1 = route.v1 {
                let reading = await self.list(call.token, by: v1, of: route.account)
                if reading.signal != .apiMissing { return RegistrationResult(reading) }
            }
            guard call.kind == .token else { return RegistrationResult(.tokensOnly) }
            let request = TopicCall(context: route.instanceID, content: InstanceIDRequest.info(call.token)) {
                InstanceIDResponseReader.info($0, now: $1)
            }
            return RegistrationResult(await self.perform(request))
        } catch {
            return RegistrationResult(TopicReading(error))
        }
    }

    // MARK: Routing

    private func route(
        for profile: TenantProfile,
        _ origin: RequestOrigin,
        _ deadline: Uptime
    ) throws(CallFailure) -> TopicRoute {
        let kind = profile.tenant.upstream
        let account = try self.account(of: profile, by: kind, origin)
        func context(_ api: FCMAPI, over pool: HTTPClientPool) -> CallContext {
            CallContext(api, by: account, over: pool, for: profile, origin: origin, deadline: deadline)
        }
        // If a credential names a server, it replaces all of Google's: the secrets go nowhere else.
        let endpoint = kind == .legacy ? profile.legacyCredential?.endpoint : profile.v1Credential?.endpoint
        let pool = try self.pools.pool(for: endpoint ?? self.settings.configuration.iidEndpoint)
        let prefersV1 =
            kind == .v1 && self.settings.configuration.topicAPI == .v1 && !account.isTopicAPIMissing(at: .now)
        return TopicRoute(
            account: account,
            instanceID: context(.instanceID, over: pool),
            v1: prefersV1 ? context(.v1Topics, over: account.pool) : nil
        )
    }

    // MARK: Changes

    private func changeAll(_ call: SubscriptionCall, _ tokens: [String], by route: TopicRoute) async -> TopicReading {
        let content = InstanceIDRequest.batch(call.change, tokens, call.topic)
        let request = TopicCall(context: route.instanceID, content: content) {
            InstanceIDResponseReader.batch($0, count: tokens.count, now: $1)
        }
        let reading = await self.perform(request)
        if reading.signal == .apiMissing { route.account.noteTopicAPI(isMissing: false, at: .now) }
        return reading
    }

    /// Makes a call per device. Devices that v1's API was missing for are asked of the Instance ID API.
    private func changeEach(
        _ call: SubscriptionCall,
        by route: TopicRoute,
        _ v1: CallContext
    ) async -> SubscriptionResult {
        let requests = V1TopicRequest(project: route.account.projectID)
        var readings = await FanOut.readings(
            count: call.tokens.count,
            width: self.settings.configuration.fanOut,
            until: call.deadline,
            notStarted: TopicReading(.notStarted)
        ) { index in
            let content = requests.change(call.change, call.tokens[index], call.topic)
            let request = TopicCall(context: v1, content: content) {
                V1TopicResponseReader.change($0, call.change, now: $1)
            }
            let reading = await self.perform(request)
            return (reading, reading.scope)
        }
        let missing = readings.indices.filter { readings[$0].signal == .apiMissing }
        if !missing.isEmpty {
            guard call.kind == .token else { return SubscriptionResult(.tokensOnly, call) }
            let reading = await self.changeAll(call, missing.map { call.tokens[$0] }, by: route)
            if missing.count == readings.count, case .changed(let outcomes) = reading.answer, outcomes.contains(.done) {
                route.account.noteTopicAPI(isMissing: true, at: .now)
            }
            for (index, outcome) in zip(missing, reading.outcomes(count: missing.count)) {
                readings[index] = TopicReading(.changed([outcome]), upstreamCode: reading.upstreamCode)
            }
        }
        return SubscriptionResult(
            readings.map { $0.outcomes(count: 1).first ?? .rejected(.upstreamProtocol) },
            upstreamCode: readings.first { $0.answer != .changed([.done]) }?.upstreamCode
                ?? readings.first?.upstreamCode ?? "none"
        )
    }

    // MARK: Look-ups

    /// The most pages that are read: a device has at most 2,000 subscriptions.
    private static let maxPages = 20

    private func list(_ token: String, by v1: CallContext, of account: FCMAccount) async -> TopicReading {
        let requests = V1TopicRequest(project: account.projectID)
        var subscriptions: [TopicSubscription] = []
        var page: String?
        for _ in 0..<Self.maxPages {
            let request = TopicCall(context: v1, content: requests.list(token, page: page)) {
                V1TopicResponseReader.list($0, now: $1)
            }
            let reading = await self.perform(request)
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
}

/// The APIs that serve a tenant's subscriptions.
private struct TopicRoute {
    let account: FCMAccount
    let instanceID: CallContext
    /// v1's own API, if it is preferred.
    let v1: CallContext?
}

private struct TopicCall: FCMCall {
    let context: CallContext
    let content: TopicRequest
    let reader: @Sendable (_ response: UpstreamResponse, _ now: Int) -> TopicReading

    var route: String { self.content.template }

    func request(authorizedBy authorization: Authorization) -> HTTPClientRequest {
        let method: HTTPRequest.Method =
            switch self.content.method {
            case .get: .get
            case .post: .post
            case .delete: .delete
            }
        var request = HTTPClientRequest(
            method: method,
            path: self.content.path,
            headers: self.context.api == .instanceID ? authorization.olderFields : authorization.fields,
            body: self.content.body
        )
        request.maxResponseBodyBytes = self.content.maxAnswerBytes
        return request
    }

    func read(_ response: HTTPClientResponse, now: Int) -> (TopicReading, AnswerSign) {
        let reading = self.reader(UpstreamResponse(response), now)
        return (reading, AnswerSign(reading, status: response.status.code))
    }

    func unanswered(_ failure: CallFailure) -> TopicReading { TopicReading(failure) }
}

extension TopicReading {
    /// A call that was not made or got no answer.
    ///
    /// Unlike a message, a change that may have been made can be repeated without harm.
    fileprivate init(_ failure: CallFailure) {
        self.init(
            rejected: failure.code == .outcomeUnknown ? .upstreamUnavailable : failure.code,
            retryAfter: failure.retryAfter,
            signal: failure.code == .upstreamCredentials ? .holdsForAll : .none,
            upstreamCode: failure.upstreamCode
        )
    }

    /// A call about installation ids, which the Instance ID API does not know.
    fileprivate static let tokensOnly = TopicReading(rejected: .invalidTarget, upstreamCode: "tokens_only")

    fileprivate func outcomes(count: Int) -> [SubscriptionOutcome] {
        switch self.answer {
        case .changed(let outcomes): outcomes
        case .rejected(let rejection): Array(repeating: .rejected(rejection), count: count)
        case .registration: Array(repeating: .rejected(.upstreamProtocol), count: count)
        }
    }

    /// The devices that the reading of one device's call is about.
    fileprivate var scope: FanOut<TopicReading>.Scope {
        switch self.signal {
        case .none: if case .changed = self.answer { .served } else { .one }
        // After another device was served, this answer is about the one device.
        case .apiMissing: .allUnlessServed
        case .tokenRefused, .holdsForAll: .all
        }
    }
}

extension AnswerSign {
    fileprivate init(_ reading: TopicReading, status: Int) {
        switch (reading.signal, reading.answer) {
        case (.tokenRefused, _): self = .tokenRefused
        case (.holdsForAll, .rejected(let rejection)) where rejection.code == .tenantRateExceeded:
            // FCM limits subscriptions for the project as a whole.
            self = AnswerSign(exhaustedQuota: rejection.retryAfter)
        case (.holdsForAll, _): self = .credentialRefused
        case (.none, _), (.apiMissing, _): self = (500...599).contains(status) ? .trouble : .well
        }
    }
}

extension SubscriptionResult {
    fileprivate init(_ reading: TopicReading, _ call: SubscriptionCall) {
        self.init(reading.outcomes(count: call.tokens.count), upstreamCode: reading.upstreamCode)
    }
}

extension RegistrationResult {
    fileprivate init(_ reading: TopicReading) {
        let answer: Result<RegistrationInfo, Refusal> =
            switch reading.answer {
            case .registration(let info, _): .success(info)
            case .rejected(let rejection): .failure(Refusal(rejection))
            case .changed: .failure(Refusal(.upstreamProtocol))
            }
        self.init(answer, upstreamCode: reading.upstreamCode)
    }
}
