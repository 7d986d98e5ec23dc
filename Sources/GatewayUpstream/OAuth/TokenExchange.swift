import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import JWTKit
import Logging
import NIOCore
import StrictJSON

/// Exchanges a service account's signature for an access token.
protocol TokenExchange: Sendable {
    /// Makes one attempt, without retries; it is a span of a recorded trace.
    func issue(
        for credential: ServiceAccountCredential,
        in trace: RequestTrace?
    ) async -> Result<IssuedToken, TokenFailure>
}

struct IssuedToken: Sendable {
    let text: Secret
    /// The lifetime in seconds, from the time of the request.
    let lifetimeSeconds: Int
}

/// The reason why there is no access token.
struct TokenFailure: Error, Sendable, Hashable {
    /// The side that must act.
    enum Kind: Sendable, Hashable {
        /// The credential is not accepted; an operator must act.
        case refused
        /// The token endpoint is unreachable or in trouble; a later attempt can succeed.
        case unreachable
    }

    let kind: Kind
    /// The event, from a bounded set.
    let code: String
    /// The token endpoint's own words, shortened if they are long; for operators.
    var detail: String?
    /// Seconds to wait, if the token endpoint named them.
    var retryAfter: Int?
    /// The seconds by which this machine's clock is ahead of the token endpoint's, if its answer had a `Date`.
    var clockOffset: Int?

    init(_ kind: Kind, _ code: String, detail: String? = nil, retryAfter: Int? = nil, clockOffset: Int? = nil) {
        self.kind = kind
        self.code = code
        self.detail = detail.map(AnswerBounds.beginning)
        self.retryAfter = retryAfter
        self.clockOffset = clockOffset
    }

    /// The code that callers get.
    var outcomeCode: OutcomeCode { self.kind == .refused ? .upstreamCredentials : .upstreamUnavailable }

    /// The caller's time ran out before the token endpoint answered.
    static let timedOut = TokenFailure(.unreachable, "token_timeout")
    /// The gateway no longer asks for tokens.
    static let shutDown = TokenFailure(.unreachable, "shutDown")
    /// The account's token endpoint is not an allowed one.
    static let hostRefused = TokenFailure(.refused, "token_host_refused")
    /// The private key can't sign.
    static let keyUnusable = TokenFailure(.refused, "key_unusable")
}

/// Asks an account's token endpoint for access tokens (RFC 7523, 2.1).
final class JWTBearerExchange: TokenExchange {
    private static let grantType = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    private static let headers: HTTPHeaderLines = {
        var headers = HTTPHeaderLines()
        headers.append(.contentType, "application/x-www-form-urlencoded")
        return headers
    }()

    private let settings: UpstreamSettings
    private let pools: OriginPools
    private let clock: any WallClock
    private let logger: Logger

    init(settings: UpstreamSettings, pools: OriginPools, clock: any WallClock, logger: Logger) {
        self.settings = settings
        self.pools = pools
        self.clock = clock
        self.logger = logger
    }

    func issue(
        for credential: ServiceAccountCredential,
        in trace: RequestTrace?
    ) async -> Result<IssuedToken, TokenFailure> {
        guard self.settings.tokenHosts.current.admits(credential.tokenURI) else { return .failure(.hostRefused) }
        guard let assertion = try? await Self.assertion(of: credential, now: self.clock.now()) else {
            return .failure(.keyUnusable)
        }
        var span: UpstreamSpan?
        do {
            let pool = try self.pools.pool(forTokensOf: credential.tokenURI.origin).get()
            let request = HTTPClientRequest(
                method: .post,
                path: credential.tokenURI.path,
                headers: Self.headers,
                // A form leaves all characters of an assertion unencoded.
                body: ByteBuffer(string: "grant_type=\(Self.grantType)&assertion=\(assertion)")
            )
            // The request has no trace fields, because the token serves other traces as well.
            span = trace?.begin("POST", at: "{token_uri}", of: pool.origin.parts, start: .now)
            let timeout = TimeAmount(self.settings.attemptTimeout.current)
            let response = try await pool.execute(request, deadline: .now() + timeout)
            span?.answered(status: response.status.code, at: .now)
            return TokenReply(
                status: response.status.code,
                retryAfter: response.fields[.retryAfter],
                date: response.fields[.date],
                body: response.body
            )
            .read(now: self.clock.now().seconds)
        } catch {
            if let error = error as? HTTPClientError { span?.failed(error.code.rawValue, at: .now) }
            self.logger.debug(
                "The token endpoint gave no answer",
                metadata: ["endpoint": "\(credential.tokenURI.authority)", "error": "\(error)"]
            )
            return .failure(TokenFailure(.unreachable, "token_endpoint"))
        }
    }

    private static func assertion(of credential: ServiceAccountCredential, now: Timestamp) async throws -> String {
        let key = try Insecure.RSA.PrivateKey(pem: credential.privateKey.revealText())
        let keyID = JWKIdentifier(string: credential.privateKeyID)
        let keys = JWTKeyCollection()
        await keys.add(rsa: key, digestAlgorithm: .sha256, kid: keyID)
        return try await keys.sign(AssertionClaims(credential, now: now), kid: keyID)
    }
}

extension HTTPFieldKey {
    fileprivate static let date = HTTPFieldKey(.date)
}

/// The claims by which a service account asks for an access token (RFC 7523, 3).
struct AssertionClaims: JWTPayload {
    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// The longest lifetime that Google accepts.
    private static let lifeSeconds = 3_600

    var iss: String
    var scope: String
    var aud: String
    var iat: Int
    var exp: Int

    init(_ credential: ServiceAccountCredential, now: Timestamp) {
        self.iss = credential.clientEmail
        self.scope = Self.scope
        self.aud = credential.tokenURI.text
        self.iat = now.seconds
        self.exp = now.seconds + Self.lifeSeconds
    }

    /// Never called: the gateway verifies no assertions.
    func verify(using algorithm: some JWTAlgorithm) {}
}

/// A token endpoint's answer as received; `date` is the value of `Date`.
struct TokenReply {
    /// The clock difference, in seconds, that the service and the assertion's lifetime tolerate.
    static let toleratedSkew = 60

    /// The errors of RFC 6749, 5.2, that may become a failure's code; other texts are unbounded.
    private static let knownErrors: Set<String> = [
        "invalid_grant", "invalid_scope", "invalid_client", "invalid_request", "unauthorized_client",
        "unsupported_grant_type", "access_denied",
    ]
    /// The assumed lifetime of a token whose answer states none.
    private static let assumedLifeSeconds = 300
    /// A day, the longest lifetime that is believed; Google grants at most half of it.
    private static let longestLifeSeconds = 86_400

    let status: Int
    let retryAfter: String?
    let date: String?
    let body: ByteBuffer

    /// Returns the answer's meaning; `now` is in seconds since 1970 by the gateway's clock.
    func read(now: Int) -> Result<IssuedToken, TokenFailure> {
        let root = (try? JSONDocument(parsing: self.body))?.root
        guard (200...299).contains(self.status) else { return .failure(self.failure(root, now: now)) }
        // A header field's value consists of visible ASCII characters (RFC 6750, 2.1).
        guard let text = root?["access_token"]?.string, AnswerBounds.isToken(text) else {
            return .failure(TokenFailure(.unreachable, "token_unreadable"))
        }
        let life = root?["expires_in"]?.number?.integer ?? Self.assumedLifeSeconds
        guard life > 0 else { return .failure(TokenFailure(.unreachable, "token_unreadable")) }
        return .success(IssuedToken(text: Secret(text), lifetimeSeconds: min(life, Self.longestLifeSeconds)))
    }

    private func failure(_ root: JSONValue?, now: Int) -> TokenFailure {
        let delay = self.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
        switch self.status {
        case 408, 429, 500...599:
            return TokenFailure(.unreachable, "token_http_\(self.status)", retryAfter: delay)
        default:
            let error = root?["error"]?.string ?? ""
            return TokenFailure(
                .refused,
                Self.knownErrors.contains(error) ? error : "token_http_\(self.status)",
                detail: root?["error_description"]?.string,
                clockOffset: self.clockOffset(now: now)
            )
        }
    }

    private func clockOffset(now: Int) -> Int? {
        guard let date = self.date, let theirs = HTTPDate.seconds(date), theirs > 1_000_000_000 else { return nil }
        return now - theirs
    }
}
