import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import Synchronization

/// Logs operators in by their admin tokens, and out.
extension ConsolePages {
    /// The form. Its token shows at the log-in that this browser got it from here.
    func logInPage(
        _ request: HTTPServerRequest,
        _ problem: String? = nil,
        status: HTTPResponse.Status = .ok
    ) throws(Refusal) -> HTTPServerResponse {
        guard ConsoleCookie.isSafe(request.connection) else {
            throw Refusal(
                .forbidden,
                "The console needs TLS (admin.tls), or a connection from this machine, such as an SSH tunnel"
            )
        }
        let known = ConsoleCookie.logIn.value(in: request)
        let secret = known ?? Array(Hex.text(Secret(randomBytes: 16).revealBytes()).utf8)[...]
        let alert: HTML? = problem.map { "<p role=\"alert\" class=\"bad\">\($0)</p>" }
        var page = ConsolePage(
            "Log in",
            """
            \(alert)<form method="post" action="/console/log-in">
            \(ConsoleRequest.field(self.console.sessions.formToken(of: secret)))
            <label>Admin token <input type="password" name="token" autocomplete="current-password" required></label>
            <button>Log in</button></form>
            <p>Use your own token (<code>fcm-gateway admin-token create</code>), or the one of the configuration.</p>
            """,
            status: status
        )
        if status == .tooManyRequests { page.retryAfter = 60 }
        page.code = problem == nil ? nil : OutcomeCode.unauthenticated.rawValue
        var response = page.response()
        if known == nil { ConsoleCookie.logIn.set(String(decoding: secret, as: UTF8.self), in: &response, to: request) }
        return response
    }

    @Sendable
    func logIn(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let (request, address) = (exchange.request, exchange.request.connection.remoteAddress ?? "")
        let (fields, sessions) = (FacadeQuery(form: request.body), self.console.sessions)
        guard let secret = ConsoleCookie.logIn.value(in: request),
            sessions.isFormToken(fields.text(ConsoleRequest.tokenName) ?? "", of: secret)
        else { return try self.logInPage(request, "The page was too old. Try again.", status: .forbidden) }
        guard self.logIns.begin(address, at: exchange.arrival) else {
            return try self.logInPage(request, "Too many failures. Wait a minute.", status: .tooManyRequests)
        }
        let token = Array((fields.text("token") ?? "").utf8)[...]
        await self.tokens.refresh(for: token)
        switch self.tokens.authenticate(token, at: exchange.time) {
        case .authenticated(let caller):
            self.logIns.takeBack(address)
            self.metrics.authenticated()
            let session = try await sessions.begin(by: caller, origin: exchange.origin)
            var response = ConsolePage(redirectTo: "/console").response()
            ConsoleCookie.session.set(session.revealText(), in: &response, to: request)
            ConsoleCookie.logIn.set(nil, in: &response, to: request)
            return response
        case .stale:
            self.logIns.takeBack(address)
            throw Refusal(.overloaded, "The store can't be reached, so admin tokens can't be checked")
        case .unknown:
            self.metrics.refused(result: "refused")
            await self.refusals.record(.unauthenticated, at: address, origin: exchange.origin)
            await self.pause()
            return try self.logInPage(request, "There is no such token.", status: .unauthorized)
        }
    }

    @Sendable
    func logOut(_ request: ConsoleRequest) async throws -> ConsolePage {
        var page = ConsolePage(redirectTo: "/console/log-in")
        do throws(GatewayError) {
            try await self.console.sessions.end(request.secret, origin: request.exchange.origin)
        } catch {
            page = ConsolePage(Refusal(error))
        }
        page.endsSession = true
        return page
    }
}

/// Bounds the log-ins of each address that fail in one minute.
final class LogInAttempts: Sendable {
    private static let maxFailures = 5
    private static let maxAddresses = 1_000

    private let minute = Mutex((begin: Uptime.now, counts: [String: Int]()))

    /// Counts an attempt. Returns false if too many have failed.
    func begin(_ address: String, at now: Uptime) -> Bool {
        self.minute.withLock { minute in
            if now - minute.begin >= .seconds(60) { minute = (now, [:]) }
            // Further addresses share one count.
            let isCounted = minute.counts[address] != nil || minute.counts.count < Self.maxAddresses
            minute.counts[isCounted ? address : "", default: 0] += 1
            return minute.counts[isCounted ? address : "", default: 0] <= Self.maxFailures
        }
    }

    /// Takes an attempt back that has not failed.
    func takeBack(_ address: String) {
        self.minute.withLock { $0.counts[$0.counts[address] == nil ? "" : address, default: 1] -= 1 }
    }
}
