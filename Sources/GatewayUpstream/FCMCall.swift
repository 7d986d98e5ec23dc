import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// One call to FCM: its request, and the meaning of its answer.
///
/// ``FCMClient`` makes the attempts in between.
protocol FCMCall: Sendable {
    associatedtype Reading: Sendable

    var context: CallContext { get }
    /// The path's template, for spans; it names no device.
    var route: String { get }

    func request(authorizedBy authorization: Authorization) -> HTTPClientRequest
    /// Returns what an answer means for the caller, and for the health of the server and the credential.
    func read(_ response: HTTPClientResponse, now: Int) -> (Reading, AnswerSign)
    func unanswered(_ failure: CallFailure) -> Reading
}

/// The context shared by the attempts of one request's calls: server, credential, tenant and deadline.
///
/// A class, since every call of a list refers to it.
final class CallContext: Sendable {
    let api: FCMAPI
    let pool: HTTPClientPool
    let health: UpstreamHealth
    let authorizer: Authorizer
    let profile: TenantProfile
    let origin: RequestOrigin
    let deadline: Uptime
    /// Checked before each attempt of a call with an idempotency key; `nil` for any other call.
    let reservation: SendReservation?
    /// True if an open breaker stops the calls. A credential check proceeds, and only reports its result.
    let heedsBreaker: Bool

    /// Creates the context of calls by a tenant's account. They go to its messaging server unless a pool is named, and
    /// use its credential unless a check tries an authorisation of its own.
    init(
        _ api: FCMAPI,
        by account: FCMAccount,
        over pool: HTTPClientPool? = nil,
        trying authorization: Authorization? = nil,
        for profile: TenantProfile,
        origin: RequestOrigin,
        deadline: Uptime,
        reservation: SendReservation? = nil
    ) {
        self.api = api
        self.pool = pool ?? account.pool
        self.health = account.health(of: api)
        self.authorizer = authorization.map { .fixed($0) } ?? account.authorizer
        self.heedsBreaker = authorization == nil
        self.profile = profile
        self.origin = origin
        self.deadline = deadline
        self.reservation = reservation
    }

    convenience init(_ api: FCMAPI, by account: FCMAccount, for call: UpstreamCall) {
        self.init(
            api,
            by: account,
            for: call.profile,
            origin: call.origin,
            deadline: call.deadline,
            reservation: call.reservation
        )
    }

    /// Returns why a call must not be made now; `nil` if it may, and then it is counted.
    func refusal(at now: Uptime) -> CallFailure? {
        self.heedsBreaker ? self.health.begin(at: now) : nil
    }
}

/// The meaning of an answer for the server's and the credential's health, and for retries.
enum AnswerSign {
    /// The server did the work, or refused this one request.
    case well
    /// The server failed before it accepted the request: the same request may be sent again (legacy 500 and 503).
    case busy(retryAfter: Int?)
    /// The server failed, and may have accepted the request.
    case trouble
    /// Too many requests; not a fault of the server.
    case excess
    /// The access token was refused: one retry with another is worthwhile (V-TOKEN).
    case tokenRefused
    /// The credential was refused; another token would not help.
    case credentialRefused
    /// The project's quota is used up: its calls pause for so many seconds.
    case quotaExhausted(pause: Int)

    /// The pause after a refusal for lack of quota: FCM's `Retry-After`, kept within 10 seconds and an hour, else a
    /// minute.
    init(exhaustedQuota retryAfter: Int?) {
        self = .quotaExhausted(pause: retryAfter.map { min(max($0, 10), 3_600) } ?? 60)
    }

    /// The reports to the two breakers.
    var verdicts: (server: CircuitBreaker.Verdict, credential: CircuitBreaker.Verdict) {
        switch self {
        case .well, .quotaExhausted: (.healthy, .healthy)
        case .busy, .trouble: (.trouble, .silent)
        case .excess: (.silent, .silent)
        case .tokenRefused: (.healthy, .silent)
        case .credentialRefused: (.healthy, .trouble)
        }
    }
}

/// The reason why a call to FCM was not made, or got no answer.
struct CallFailure: Error, Hashable {
    var code: OutcomeCode
    /// The event, from a bounded set.
    var upstreamCode: String
    /// Seconds until a retry is worthwhile, if known.
    var retryAfter: Int?
    /// True if the request was on its way to a server, or would have been with more time.
    var isTransport = false
    var text: String?

    /// The caller's time ran out before the call was made.
    static let notStarted = CallFailure(code: .upstreamUnavailable, upstreamCode: "not_started", isTransport: true)
}

extension CallFailure {
    init(_ error: HTTPClientError) {
        self.init(code: error.meaning.code, upstreamCode: error.code.rawValue, isTransport: true)
    }

    init(_ failure: TokenFailure) {
        self.init(
            code: failure.outcomeCode,
            upstreamCode: failure.code,
            retryAfter: failure.kind == .unreachable ? failure.retryAfter : nil
        )
    }
}

extension HTTPClientError {
    /// The meaning of a call without an answer: the caller's outcome code and the breaker's verdict.
    ///
    /// `isWorthRetrying` is true if none of the request has left: it may be sent again at once, by another connection.
    ///
    /// Once a request may have reached FCM without an answer, its outcome is unknown.
    var meaning: (code: OutcomeCode, verdict: CircuitBreaker.Verdict, isWorthRetrying: Bool) {
        let open: OutcomeCode = self.requestSent ? .outcomeUnknown : .upstreamUnavailable
        return switch self.code {
        case .connectFailed, .connectTimeout, .proxyFailed: (.upstreamUnavailable, .trouble, !self.requestSent)
        case .tlsFailed, .refused, .proxyUnauthorized: (.upstreamUnavailable, .trouble, false)
        case .poolExhausted: (.upstreamUnavailable, .silent, false)
        case .connectionClosed: (open, .lost, !self.requestSent)
        case .deadlineExceeded: (open, .trouble, false)
        case .cancelled, .shutDown: (open, .silent, false)
        case .responseTooLarge, .invalidResponse: (.upstreamProtocol, .trouble, false)
        }
    }
}

extension HTTPFieldKey {
    static let authorization = HTTPFieldKey(.authorization)
    static let contentType = HTTPFieldKey(.contentType)
    static let retryAfter = HTTPFieldKey(.retryAfter)
    /// Tells Google's older servers that a bearer token is an access token.
    static let accessTokenAuth = HTTPFieldKey(HTTPField.Name(constant: "access_token_auth"))
    static let projectID = HTTPFieldKey(HTTPField.Name(constant: "project_id"))
}
