import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes

/// One call to FCM: what it says and what its answer means.
///
/// ``FCMClient`` makes the attempts in between.
protocol FCMCall: Sendable {
    associatedtype Reading: Sendable

    var context: CallContext { get }
    /// The path's template, for spans: it names no device.
    var route: String { get }

    func request(authorizedBy authorization: Authorization) -> HTTPClientRequest
    /// What an answer means, for the caller and for the server's and the credential's health.
    func read(_ response: HTTPClientResponse, now: Int) -> (Reading, AnswerSign)
    func unanswered(_ failure: CallFailure) -> Reading
}

/// What the attempts of one request's calls share: where they go, by what, for whom and until when.
///
/// A class, since every call of a list refers to it.
final class CallContext: Sendable {
    let api: FCMAPI
    let pool: HTTPClientPool
    let health: UpstreamHealth
    let authorizer: Authorizer
    let profile: TenantProfile
    let origin: RequestOrigin
    let deadline: ContinuousClock.Instant
    /// Asked before each attempt of a call with an idempotency key; `nil` for any other.
    let reservation: SendReservation?
    /// True if an open breaker keeps calls from being made; a credential check is made all the same, and only reports.
    let heedsBreaker: Bool

    /// Calls by a tenant's account: to its messaging server unless a pool is named, by its credential unless a check
    /// tries an authorisation of its own.
    init(
        _ api: FCMAPI,
        by account: FCMAccount,
        over pool: HTTPClientPool? = nil,
        trying authorization: Authorization? = nil,
        for profile: TenantProfile,
        origin: RequestOrigin,
        deadline: ContinuousClock.Instant,
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

    /// Why a call must not be made now; `nil` where it may, and then it is counted.
    func refusal(at now: ContinuousClock.Instant) -> CallFailure? {
        self.heedsBreaker ? self.health.begin(at: now) : nil
    }
}

/// What an answer says of the server and of the credential, and what is worth doing about it.
enum AnswerSign {
    /// The server did what was asked, or refused this one request.
    case well
    /// The server failed before it took the request: the same may be sent again (legacy 500 and 503).
    case busy(retryAfter: Int?)
    /// The server failed, and may have taken the request.
    case trouble
    /// Too many requests: no fault of the server's.
    case excess
    /// The access token was refused: another is worth one retry (V-TOKEN).
    case tokenRefused
    /// The credential was refused, and no other token mends it.
    case credentialRefused
    /// The project's quota is used up: its calls rest for so many seconds.
    case quotaExhausted(pause: Int)

    /// The pause that a refusal for want of quota asks for: as FCM says within 10 seconds and an hour, or a minute.
    init(exhaustedQuota retryAfter: Int?) {
        self = .quotaExhausted(pause: retryAfter.map { min(max($0, 10), 3_600) } ?? 60)
    }

    /// What the two breakers are told.
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

/// Why a call to FCM was not made, or got no answer.
struct CallFailure: Error, Hashable {
    var code: OutcomeCode
    /// What happened, from a bounded set.
    var upstreamCode: String
    /// Seconds until the same is worth trying again, where that is known.
    var retryAfter: Int?
    /// Whether the request was on its way to a server, or would have been with more time.
    var isTransport = false
    var text: String?

    /// The caller's time was up before the call was made.
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
    /// What callers are told of a call that got no answer, what the server's breaker is, and whether the same request
    /// may be sent again at once: nothing of it has left, and another connection may do.
    ///
    /// Once a request may have reached FCM and nothing came back, it is unknown whether the message was delivered.
    var meaning: (code: OutcomeCode, verdict: CircuitBreaker.Verdict, isWorthRetrying: Bool) {
        let open: OutcomeCode = self.requestSent ? .outcomeUnknown : .upstreamUnavailable
        return switch self.code {
        case .connectFailed, .connectTimeout: (.upstreamUnavailable, .trouble, !self.requestSent)
        case .tlsFailed, .refused: (.upstreamUnavailable, .trouble, false)
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
