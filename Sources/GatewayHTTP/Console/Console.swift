import EventLoopHTTP
import FCMModel
package import GatewayCore
import HTTPTypes
import NIOCore

/// The parts of the gateway that only the console needs.
package struct Console: Sendable {
    let sessions: ConsoleSessions
    let history: ConsoleHistory
    let limiter: any RateLimiter
    /// The rule for limits while Redis fails; `nil` if they are in memory.
    let whenRedisFails: String?
    let retired: RetiredTokens
    let pipeline: SendPipeline

    package init(
        sessions: ConsoleSessions,
        history: ConsoleHistory,
        limiter: any RateLimiter,
        whenRedisFails: String?,
        retired: RetiredTokens,
        pipeline: SendPipeline
    ) {
        (self.sessions, self.history, self.limiter) = (sessions, history, limiter)
        (self.whenRedisFails, self.retired, self.pipeline) = (whenRedisFails, retired, pipeline)
    }
}

/// The operators' console: pages at `/console` of the admin listener.
///
/// Each page needs a session and a role (``AdminRoles``). Each act is a form with a token of the session, and calls what
/// the admin API calls, which records it.
struct ConsolePages: Sendable {
    /// The pages that the navigation lists.
    static let navigation = [
        ("/console", "Overview"), ("/console/tenants", "Tenants"), ("/console/batches", "Batches"),
        ("/console/device", "Device"), ("/console/audit", "Audit"), ("/console/try", "Try"),
    ]

    let console: Console
    let tokens: AdminTokens
    let refusals: AccessRefusals
    let administration: Administration
    let batches: Batches
    let audit: AuditAccess
    let cursors: AuditQuery.CursorSealer
    let exposition: MetricsExposition
    let metrics: HTTPMetrics
    let readiness: Readiness
    let pause: @Sendable () async -> Void
    let logIns = LogInAttempts()

    var endpoints: [any Endpoint] {
        let batch = "/console/tenants/{tenant}/batches/{batch}"
        func open(_ method: HTTPRequest.Method, _ path: String) -> Route {
            Route(method, path).with(\.dialect, .console)
        }
        return [
            Handler(open: open(.get, "/console/log-in")) { try self.logInPage($0.request) },
            Handler(open: open(.post, "/console/log-in"), self.logIn),
            Handler(open: open(.get, "/console/style.css")) { EmbeddedFile.consoleStyle.response(to: $0) },
            Handler(open: open(.get, "/console/script.js")) { EmbeddedFile.consoleScript.response(to: $0) },
            Handler(open: open(.get, "/console/icon.svg")) { EmbeddedFile.consoleIcon.response(to: $0) },
            self.route(.post, "/console/log-out", self.logOut),
            self.route(.get, "/console", self.overview),
            self.route(.get, "/console/tenants", self.tenants),
            self.route(.get, "/console/tenants/{tenant}", self.tenant),
            self.route(.get, "/console/batches", self.batchList),
            self.route(.get, batch, self.batch),
            self.route(.get, "\(batch)/results", self.results),
            self.route(.post, "\(batch)/pause") { try await self.change($0, .pause(.byOperator), .batchPause) },
            self.route(.post, "\(batch)/resume") { try await self.change($0, .resume(keyID: nil), .batchResume) },
            self.route(.post, "\(batch)/cancel") { try await self.change($0, .cancel(.byOperator), .batchCancel) },
            self.route(.get, "/console/device", self.deviceQuestion),
            self.route(.post, "/console/device", self.device),
            self.route(.get, "/console/audit", self.auditList),
            self.route(.get, "/console/try", self.tryForm),
            self.route(.post, "/console/try", self.tryMessage),
        ]
    }

    /// A route of operators who are logged in. A refusal is shown as a page with the navigation.
    private func route(
        _ method: HTTPRequest.Method,
        _ path: String,
        _ show: @escaping @Sendable (ConsoleRequest) async throws -> ConsolePage
    ) -> any Endpoint {
        Handler(Route(method, path).with(\.credential, .session).with(\.dialect, .console)) { exchange in
            let request = try ConsoleRequest(exchange, self.console.sessions)
            do {
                return try await show(request).response(to: request)
            } catch let refusal as Refusal {
                return ConsolePage(refusal).response(to: request)
            } catch let error as GatewayError where error.cause == nil {
                return ConsolePage(Refusal(error)).response(to: request)
            }
        }
    }
}

/// A request of an operator who is logged in.
struct ConsoleRequest: Sendable {
    let exchange: Exchange
    /// The fields of the query, or of the form that was sent.
    let fields: QueryReader
    let secret: ArraySlice<UInt8>
    /// The hidden field of each form, which proves that the form comes from a page of this session.
    let formToken: HTML

    /// Throws `forbidden` for a form that is not of this session.
    init(_ exchange: Exchange, _ sessions: ConsoleSessions) throws(Refusal) {
        guard let secret = ConsoleCookie.session.value(in: exchange.request) else { throw Refusal(.unauthenticated) }
        let isForm = exchange.request.head.method == .post
        self.fields = QueryReader(
            isForm ? FacadeQuery(form: exchange.request.body) : FacadeQuery(exchange.request.head.pathBytes)
        )
        guard !isForm || sessions.isFormToken(self.fields.text(Self.tokenName) ?? "", of: secret) else {
            throw Refusal(.forbidden, "The form is not of this session; read the page again")
        }
        (self.exchange, self.secret) = (exchange, secret)
        self.formToken = Self.field(sessions.formToken(of: secret))
    }

    static let tokenName = "form_token"

    static func field(_ token: String) -> HTML {
        "<input type=\"hidden\" name=\"\(Self.tokenName)\" value=\"\(token)\">"
    }

    /// The operator in the place of a tenant.
    func caller(for profile: TenantProfile) throws(Refusal) -> Caller {
        guard let caller = self.exchange.operator else { throw Refusal(.unauthenticated) }
        return Caller(
            principal: Principal(caller, for: profile, at: self.exchange.time),
            origin: self.exchange.origin,
            deadline: self.exchange.arrival + .seconds(30)
        )
    }
}

/// A cookie of the console.
enum ConsoleCookie: String {
    case session = "fcm-gateway"
    /// Ties the log-in form to a browser.
    case logIn = "fcm-gateway-log-in"

    /// True if no one but the gateway can read what the browser sends.
    static func isSafe(_ connection: HTTPServerRequest.ConnectionInfo) -> Bool {
        let address = connection.remoteAddress ?? ""
        return connection.isTLS || address == "::1" || ["127.", "::ffff:127."].contains { address.hasPrefix($0) }
    }

    /// With TLS the prefix makes browsers accept the cookie from this host alone, and by TLS alone.
    private func name(_ request: HTTPServerRequest) -> String {
        request.connection.isTLS ? "__Host-\(self.rawValue)" : self.rawValue
    }

    /// Returns the cookie of a request over a safe connection; `nil` if there is none.
    func value(in request: HTTPServerRequest) -> ArraySlice<UInt8>? {
        guard Self.isSafe(request.connection) else { return nil }
        let start = Array("\(self.name(request))=".utf8)
        return request.head.fields.bytes(of: .cookie)?.split(separator: UInt8(ascii: ";"))
            .map { $0.drop { $0 == UInt8(ascii: " ") } }
            .first { $0.starts(with: start) && $0.count > start.count && $0.count < 200 }?
            .dropFirst(start.count)
    }

    /// Sets the cookie for as long as the browser runs, or deletes it if there is no value.
    func set(_ value: String?, in response: inout HTTPServerResponse, to request: HTTPServerRequest) {
        let end = value == nil ? "; Max-Age=0" : ""
        let secure = request.connection.isTLS ? "; Secure" : ""
        let cookie = "\(self.name(request))=\(value ?? ""); Path=/; HttpOnly; SameSite=Strict\(secure)\(end)"
        response.headers.append(.setCookie, cookie)
    }
}
