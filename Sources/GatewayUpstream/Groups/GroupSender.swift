import EventLoopHTTP
package import FCMModel
package import GatewayCore
import HTTPTypes
import NIOCore

/// Manages device groups at `/fcm/notification`, by the credential that the tenant's messages go by.
package final class GroupSender: GroupUpstream {
    /// The path without its query, for spans.
    private static let route = "/fcm/notification"

    private let settings: UpstreamSettings
    private let pools: OriginPools
    private let accounts: V1Accounts
    private let clock: any WallClock
    private let attempts: AttemptRecorder

    /// A sender over pools of connections.
    package init(
        settings: UpstreamSettings,
        pools: OriginPools,
        accounts: V1Accounts,
        clock: any WallClock,
        metrics: GatewayMetrics = GatewayMetrics(),
        log: AttemptLog = AttemptLog()
    ) {
        self.settings = settings
        self.pools = pools
        self.accounts = accounts
        self.clock = clock
        self.attempts = AttemptRecorder(metrics: UpstreamMetrics(.deviceGroups, metrics), log: log)
    }

    /// Makes a request by the tenant's sender id and the credential of its protocol (G-PROJECT).
    package func perform(
        _ request: GroupRequest,
        of profile: TenantProfile,
        deadline: ContinuousClock.Instant,
        origin: RequestOrigin
    ) async -> GroupResult {
        guard let senderID = profile.tenant.senderID else {
            return self.missing("no_sender_id", of: profile, origin)
        }
        let call = Call(request: request, profile: profile, senderID: senderID, deadline: deadline, origin: origin)
        switch profile.tenant.upstream {
        case .legacy:
            guard let credential = profile.legacyCredential else {
                return self.missing("no_credential", of: profile, origin)
            }
            let endpoint = credential.endpoint ?? self.settings.configuration.legacyEndpoint
            guard let pool = self.pools.pool(for: endpoint) else {
                return GroupResult(self.pools.obstacle(at: endpoint))
            }
            let headers = Self.headers(credential, senderID: senderID)
            return await self.attempt(call, over: pool, headers: headers, repeats: 0).result
        case .v1:
            guard let credential = profile.v1Credential else {
                return self.missing("no_credential", of: profile, origin)
            }
            guard let account = self.accounts.account(of: profile, credential) else {
                return GroupResult(self.accounts.obstacle(to: credential))
            }
            return await self.perform(call, by: account)
        }
    }

    /// What is asked, for whom, and until when.
    private struct Call {
        let request: GroupRequest
        let profile: TenantProfile
        let senderID: String
        let deadline: ContinuousClock.Instant
        let origin: RequestOrigin

        /// Where it goes, and for whom.
        func subject(at server: HTTPOrigin) -> AttemptRecorder.Subject {
            AttemptRecorder.Subject(server: server, profile: self.profile, origin: self.origin)
        }
    }

    /// Makes a request by an access token, and once more where FCM refuses it (V-TOKEN).
    private func perform(_ call: Call, by account: V1Account) async -> GroupResult {
        for isLast in [false, true] {
            let token: AccessToken
            switch await account.tokens.token(until: call.deadline, in: call.origin.trace) {
            case .success(let atHand): token = atHand
            case .failure(let failure): return GroupResult(failure)
            }
            let headers = Self.headers(token, senderID: call.senderID)
            let end = await self.attempt(call, over: account.pool, headers: headers, repeats: isLast ? 1 : 0)
            guard end.status == 401, account.tokens.refused(token), !isLast else { return end.result }
        }
        return GroupResult(.failure(GroupFailure(.upstreamCredentials)), upstreamCode: "401")
    }

    /// A request that can't be made for want of something that an operator must provide.
    private func missing(_ cause: String, of profile: TenantProfile, _ origin: RequestOrigin) -> GroupResult {
        let text = profile.missingForGroups
        self.attempts.log.missing(cause, text, of: profile, origin)
        return GroupResult(.failure(GroupFailure(.upstreamCredentials, text: text)), upstreamCode: cause)
    }

    // MARK: One attempt

    /// What an attempt came to, with the status where there was an answer.
    private struct AttemptEnd {
        var result: GroupResult
        var status: Int?
    }

    private func attempt(
        _ call: Call,
        over pool: HTTPClientPool,
        headers: HTTPHeaderLines,
        repeats: Int
    ) async -> AttemptEnd {
        let start = ContinuousClock.now
        let timeLeft = min(self.settings.attemptTimeout.current, call.deadline - start)
        guard timeLeft > .zero else { return AttemptEnd(result: GroupResult(transportFailure: "not_started")) }
        let request = Self.request(call.request, headers: headers)
        let attempt = self.attempts.begin(
            at: start,
            in: call.origin.trace,
            request.method,
            Self.route,
            repeats: repeats,
            call.subject(at: pool.origin)
        )
        do {
            let response = try await pool.execute(
                attempt.carried(by: request, for: call.profile),
                deadline: .now() + TimeAmount(timeLeft)
            )
            self.attempts.answered(attempt, status: response.status.code, call.subject(at: pool.origin))
            let wire = LegacyResponse(
                status: response.status.code,
                retryAfter: response.fields[.retryAfter],
                body: response.body
            )
            return AttemptEnd(
                result: GroupResponseReader.read(wire, now: self.clock.now().seconds),
                status: response.status.code
            )
        } catch {
            self.attempts.failed(attempt, error, call.subject(at: pool.origin))
            return AttemptEnd(result: GroupResult(transportFailure: error.code.rawValue))
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
    /// A request that can't be made for want of a server to send it to.
    fileprivate init(_ obstacle: (code: OutcomeCode, name: String)) {
        self =
            obstacle.code == .upstreamCredentials
            ? GroupResult(.failure(GroupFailure(.upstreamCredentials)), upstreamCode: obstacle.name)
            : GroupResult(transportFailure: obstacle.name)
    }

    /// A request that could not be made for want of an access token.
    fileprivate init(_ failure: TokenFailure) {
        let kind: GroupFailure.Kind = failure.kind == .refused ? .upstreamCredentials : .upstreamUnavailable
        self.init(.failure(GroupFailure(kind, retryAfter: failure.retryAfter)), upstreamCode: failure.code)
    }
}
