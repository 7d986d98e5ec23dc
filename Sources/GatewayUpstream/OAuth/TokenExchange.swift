import EventLoopHTTP
import FCMModel
import Foundation
import GatewayCore
import HTTPTypes
import JWTKit
import Logging
import NIOCore
import StrictJSON

/// Exchanges a credential's proof for an access token.
protocol TokenExchange: Sendable {
    /// Makes one attempt, without retries; it is a span of a recorded trace.
    func issue(
        for credential: V1Credential,
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
    /// The server that refused or failed; `nil` if none was called.
    var server: String?
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
    /// The file or answer that should hold the provider's token holds none.
    static let subjectTokenUnreadable = TokenFailure(.unreachable, "subject_token_unreadable")
    /// The private key can't sign.
    static let keyUnusable = TokenFailure(.refused, "key_unusable")
}

/// Requests access tokens from Google's servers, and from those that stand in their place.
///
///     service account    assertion ─────────────────────▶ token endpoint ──▶ access token     (RFC 7523, 2.1)
///     external account   subject token ──▶ STS ──▶ access token [──▶ IAM ──▶ access token]   (RFC 8693)
///     machine            metadata server ──▶ access token
final class GoogleTokens: TokenExchange {
    private static let messagingScope = "https://www.googleapis.com/auth/firebase.messaging"
    private static let cloudScope = "https://www.googleapis.com/auth/cloud-platform"
    /// Google's tokens have up to 12 KiB.
    private static let maxTokenBytes = 16 * 1024
    private static let metadataPath = "/computeMetadata/v1/instance/service-accounts/default/token?scopes="

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

    func issue(for credential: V1Credential, in trace: RequestTrace?) async -> Result<IssuedToken, TokenFailure> {
        do throws(TokenFailure) {
            switch credential.source {
            case .serviceAccount(let key): return .success(try await self.token(for: key, in: trace))
            case .external(let account): return .success(try await self.token(for: account, in: trace))
            case .metadataServer: return .success(try await self.tokenOfMachine(in: trace))
            }
        } catch {
            return .failure(error)
        }
    }

    private func token(for key: ServiceAccountKey, in trace: RequestTrace?) async throws(TokenFailure) -> IssuedToken {
        guard self.settings.tokenHosts.current.admits(key.tokenURI) else { throw .hostRefused }
        guard let assertion = try? await Self.assertion(of: key, now: self.clock.now()) else { throw .keyUnusable }
        let form = [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", assertion)]
        return try await self.reply(of: key.tokenURI, form: form, in: trace)
    }

    private func token(
        for account: ExternalAccount,
        in trace: RequestTrace?
    ) async throws(TokenFailure) -> IssuedToken {
        let hosts = self.settings.tokenHosts.current
        let urls = [account.tokenURL, account.impersonationURL].compactMap(\.self)
        guard urls.allSatisfy(hosts.admits) else { throw .hostRefused }
        let subject = try await self.subjectToken(of: account, hosts, in: trace)
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"), ("audience", account.audience),
            ("scope", account.impersonationURL == nil ? Self.messagingScope : Self.cloudScope),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token_type", account.subjectTokenType), ("subject_token", subject),
        ]
        let token = try await self.reply(of: account.tokenURL, form: form, in: trace)
        guard let url = account.impersonationURL else { return token }
        var headers = HTTPHeaderLines()
        headers.append(.authorization, Array("Bearer ".utf8) + token.text.revealBytes())
        headers.append(.contentType, "application/json")
        var body = JSONWriter()
        body.beginObject()
        body.member("scope", [Self.messagingScope])
        body.endObject()
        let impersonated = HTTPClientRequest(method: .post, path: url.path, headers: headers, body: body.finish())
        return try await self.token(of: url, impersonated, in: trace)
    }

    /// Asks the metadata server of the configuration.
    private func tokenOfMachine(in trace: RequestTrace?) async throws(TokenFailure) -> IssuedToken {
        guard let server = self.settings.tokenHosts.current.metadataServer,
            let uri = TokenURI("http://\(server)" + Self.metadataPath + Self.messagingScope, isLoose: true)
        else { throw .hostRefused }
        var headers = HTTPHeaderLines()
        headers.append(.metadataFlavor, "Google")
        let request = HTTPClientRequest(method: .get, path: uri.path, headers: headers)
        return try await self.token(of: uri, request, in: trace)
    }

    // MARK: Subject tokens

    /// Reads the provider's token anew for each exchange, because it expires.
    private func subjectToken(
        of account: ExternalAccount,
        _ hosts: TokenHosts,
        in trace: RequestTrace?
    ) async throws(TokenFailure) -> String {
        let content: [UInt8]
        switch account.subject {
        case .file(let name):
            guard let directory = hosts.subjectTokenDirectory else { throw .hostRefused }
            guard let read = SubjectTokenFile.read(name, below: directory) else { throw .subjectTokenUnreadable }
            content = read
        case .url(let uri, let fields):
            guard uri.isEncrypted, hosts.admitsSubjectTokens(of: uri) else { throw .hostRefused }
            var headers = HTTPHeaderLines()
            for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
                if let name = HTTPField.Name(name) { headers.append(HTTPFieldKey(name), value) }
            }
            let request = HTTPClientRequest(method: .get, path: uri.path, headers: headers)
            let reply = try await self.call(uri, request, in: trace)
            // A redirect is not followed: it would name another server.
            guard reply.status == 200 else {
                var failure = TokenFailure(.unreachable, "subject_token_http_\(reply.status)")
                failure.server = uri.authority
                throw failure
            }
            content = Array(reply.body.readableBytesView)
        }
        var token: String? = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        if let member = account.tokenMember {
            token = (try? JSONDocument(parsing: ByteBuffer(bytes: content)))?.root[member]?.string
        }
        guard let token, Self.isToken(token) else { throw .subjectTokenUnreadable }
        return token
    }

    // MARK: Calls

    private func reply(
        of uri: TokenURI,
        form: [(String, String)],
        in trace: RequestTrace?
    ) async throws(TokenFailure) -> IssuedToken {
        var headers = HTTPHeaderLines()
        headers.append(.contentType, "application/x-www-form-urlencoded")
        let text = form.map { "\($0.0)=\(PercentEncoding.encoded($0.1))" }.joined(separator: "&")
        let request = HTTPClientRequest(method: .post, path: uri.path, headers: headers, body: ByteBuffer(string: text))
        return try await self.token(of: uri, request, in: trace)
    }

    private func token(
        of uri: TokenURI,
        _ request: HTTPClientRequest,
        in trace: RequestTrace?
    ) async throws(TokenFailure) -> IssuedToken {
        do throws(TokenFailure) {
            return try await self.call(uri, request, in: trace).read(now: self.clock.now().seconds).get()
        } catch {
            var failure = error
            failure.server = uri.authority
            throw failure
        }
    }

    /// True for the text of a token in a header field: visible ASCII (RFC 6750, 2.1).
    static func isToken(_ text: String) -> Bool {
        (1...Self.maxTokenBytes).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// Calls a server whose address was admitted. The request has no trace fields, because the token serves other
    /// traces as well.
    private func call(
        _ uri: TokenURI,
        _ request: HTTPClientRequest,
        in trace: RequestTrace?
    ) async throws(TokenFailure) -> TokenReply {
        var span: UpstreamSpan?
        do {
            let pool = try self.pools.pool(forTokensOf: uri.origin)
            span = trace?.begin(request.method.rawValue, at: "{token_uri}", of: pool.origin.parts, start: .now)
            let timeout = TimeAmount(self.settings.attemptTimeout.current)
            let response = try await pool.execute(request, deadline: .now() + timeout)
            span?.answered(status: response.status.code, at: .now)
            return TokenReply(
                status: response.status.code,
                retryAfter: response.fields[.retryAfter],
                date: response.fields[.date],
                body: response.body
            )
        } catch {
            let reason = (error as? HTTPClientError)?.code
            if let reason { span?.failed(reason.rawValue, at: .now) }
            self.logger.debug(
                "The token endpoint gave no answer",
                metadata: ["endpoint": "\(uri.authority)", "error": "\(error)"]
            )
            // Only the proxy's operator can help, so its refusals are named.
            let ofProxy = reason.flatMap { [.proxyFailed, .proxyUnauthorized].contains($0) ? $0.rawValue : nil }
            var failure = TokenFailure(.unreachable, ofProxy ?? "token_endpoint")
            failure.server = uri.authority
            throw failure
        }
    }

    private static func assertion(of account: ServiceAccountKey, now: Timestamp) async throws -> String {
        let key = try Insecure.RSA.PrivateKey(pem: account.privateKey.revealText())
        let keyID = JWKIdentifier(string: account.privateKeyID)
        let keys = JWTKeyCollection()
        await keys.add(rsa: key, digestAlgorithm: .sha256, kid: keyID)
        return try await keys.sign(AssertionClaims(account, now: now), kid: keyID)
    }
}

/// The file of a subject token.
enum SubjectTokenFile {
    private static let maxBytes = 64 * 1024

    /// Returns the content of a regular file of at most 64 KiB, whose real place is below a folder. Kubernetes' files of
    /// tokens are links within their folder.
    static func read(_ name: String, below directory: String) -> [UInt8]? {
        let folder = URL(fileURLWithPath: directory, isDirectory: true).resolvingSymlinksInPath()
        let file = URL(fileURLWithPath: name, relativeTo: folder).resolvingSymlinksInPath().standardizedFileURL
        guard file.path.hasPrefix(folder.path + "/"),
            let attributes = try? FileManager.default.attributesOfItem(atPath: file.path),
            attributes[.type] as? FileAttributeType == .typeRegular,
            let size = attributes[.size] as? Int, size <= Self.maxBytes,
            let content = try? Data(contentsOf: file)
        else { return nil }
        return Array(content)
    }
}

extension HTTPFieldKey {
    fileprivate static let date = HTTPFieldKey(.date)
    fileprivate static let metadataFlavor = HTTPFieldKey(HTTPField.Name(constant: "Metadata-Flavor"))
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

    init(_ account: ServiceAccountKey, now: Timestamp) {
        self.iss = account.clientEmail
        self.scope = Self.scope
        self.aud = account.tokenURI.text
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
        // IAM's names differ from those of RFC 6749.
        let token = root?["access_token"] ?? root?["accessToken"]
        guard let text = token?.string, GoogleTokens.isToken(text) else {
            return .failure(TokenFailure(.unreachable, "token_unreadable"))
        }
        let end = root?["expireTime"]?.string.flatMap { Timestamp(rfc3339: $0) }
        let life = root?["expires_in"]?.number?.integer ?? end.map { $0.seconds - now } ?? Self.assumedLifeSeconds
        guard life > 0 else { return .failure(TokenFailure(.unreachable, "token_unreadable")) }
        return .success(IssuedToken(text: Secret(text), lifetimeSeconds: min(life, Self.longestLifeSeconds)))
    }

    private func failure(_ root: JSONValue?, now: Int) -> TokenFailure {
        let delay = self.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
        switch self.status {
        case 408, 429, 500...599:
            return TokenFailure(.unreachable, "token_http_\(self.status)", retryAfter: delay)
        default:
            // IAM's errors are objects, those of RFC 6749 are names.
            let error = root?["error"]?.string ?? ""
            let detail = root?["error_description"]?.string ?? root?["error"]?["message"]?.string
            return TokenFailure(
                .refused,
                Self.knownErrors.contains(error) ? error : "token_http_\(self.status)",
                detail: detail,
                clockOffset: self.clockOffset(now: now)
            )
        }
    }

    private func clockOffset(now: Int) -> Int? {
        guard let date = self.date, let theirs = HTTPDate.seconds(date), theirs > 1_000_000_000 else { return nil }
        return now - theirs
    }
}
