import AsyncHTTPClient
package import GatewayCore
import JWTKit
package import Logging
package import NIOCore
import NIOHTTP1
import NIOSSL

import struct EventLoopHTTP.HTTPClientConfiguration

/// Asks an account's token endpoint for access tokens (RFC 7523, 2.1).
package final class JWTBearerExchange: TokenExchange {
    private static let grantType = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    private static let maxBodyBytes = 64 * 1024

    private let client: HTTPClient
    private let hosts: Setting<TokenHosts>
    private let timeout: DurationSetting
    private let clock: any WallClock
    private let logger: Logger

    /// An exchange; call ``shutdown()`` before letting go of it.
    ///
    /// - Parameters:
    ///   - settings: where tokens may be asked for, how long one answer may take, how servers are verified.
    ///   - eventLoopGroup: the loops that connections live on.
    ///   - clock: tells the time that assertions are dated with.
    ///   - logger: hears of answers that are none.
    package init(
        settings: UpstreamSettings,
        eventLoopGroup: any EventLoopGroup,
        clock: any WallClock,
        logger: Logger
    ) {
        var configuration = HTTPClient.Configuration()
        configuration.tlsConfiguration = settings.client.tls
        configuration.redirectConfiguration = .disallow
        // A token serves many requests, so that getting it belongs to nobody's trace.
        configuration.tracing.tracer = nil
        configuration.timeout.connect = TimeAmount(settings.client.connectTimeout)
        self.client = HTTPClient(eventLoopGroupProvider: .shared(eventLoopGroup), configuration: configuration)
        self.hosts = settings.tokenHosts
        self.timeout = settings.attemptTimeout
        self.clock = clock
        self.logger = logger
    }

    /// Signs an assertion and hands it in.
    package func issue(for credential: ServiceAccountCredential) async -> Result<IssuedToken, TokenFailure> {
        guard self.hosts.current.admits(credential.tokenURI) else { return .failure(.hostRefused) }
        let now = self.clock.now()
        let assertion: String
        do {
            assertion = try await Self.assertion(of: credential, now: now)
        } catch {
            return .failure(.keyUnusable)
        }
        do {
            return try await self.post(assertion, to: credential.tokenURI).read(now: self.clock.now().seconds)
        } catch {
            self.logger.debug(
                "The token endpoint gave no answer",
                metadata: ["endpoint": "\(credential.tokenURI.authority)", "error": "\(error)"]
            )
            return .failure(TokenFailure(.unreachable, "token_endpoint"))
        }
    }

    /// Closes every connection.
    package func shutdown() async {
        do {
            try await self.client.shutdown()
        } catch {
            self.logger.debug("The client was shut down already", metadata: ["error": "\(error)"])
        }
    }

    private static func assertion(of credential: ServiceAccountCredential, now: Timestamp) async throws -> String {
        let key = try Insecure.RSA.PrivateKey(pem: credential.privateKey.revealText())
        let keyID = JWKIdentifier(string: credential.privateKeyID)
        let keys = JWTKeyCollection()
        await keys.add(rsa: key, digestAlgorithm: .sha256, kid: keyID)
        return try await keys.sign(AssertionClaims(credential, now: now), kid: keyID)
    }

    /// Hands an assertion in, and gives up when its time is up.
    ///
    /// The client's own deadline ends with the head of an answer: a body that drips would never end.
    private func post(_ assertion: String, to uri: TokenURI) async throws -> TokenReply {
        try await withThrowingTaskGroup(of: TokenReply?.self) { group in
            group.addTask { try await self.exchange(assertion, at: uri) }
            group.addTask {
                try await Task.sleep(for: self.timeout.current)
                return nil
            }
            defer { group.cancelAll() }
            guard case .some(.some(let reply)) = try await group.next() else { throw HTTPClientError.deadlineExceeded }
            return reply
        }
    }

    private func exchange(_ assertion: String, at uri: TokenURI) async throws -> TokenReply {
        var request = HTTPClientRequest(url: uri.text)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
        // An assertion is made of letters that a form leaves alone.
        request.body = .bytes(ByteBuffer(string: "grant_type=\(Self.grantType)&assertion=\(assertion)"))
        let response = try await self.client.execute(request, deadline: .now() + TimeAmount(self.timeout.current))
        return TokenReply(
            status: Int(response.status.code),
            retryAfter: response.headers.first(name: "Retry-After"),
            date: response.headers.first(name: "Date"),
            body: try await response.body.collect(upTo: Self.maxBodyBytes)
        )
    }
}
