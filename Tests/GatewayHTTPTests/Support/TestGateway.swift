import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayHTTP
import GatewayTestKit
import HTTPTypes
import InMemoryLogging
import Logging
import MetricsTestKit
import NIOCore
import NIOPosix
import Testing

/// Both listeners of a gateway over test doubles, called in process.
///
/// There are two tenants: `demo`, whose key has every scope, and `other`.
struct TestGateway: Sendable {
    static let adminToken = "admin-token-of-the-test"
    static let host = "gateway.test"
    static let origin = RequestOrigin(method: "PUT", requestID: "set-up")

    let clock = ManualClock()
    let upstream: ScriptedUpstream
    let topics: ScriptedTopics
    /// The database of all stores; each store can fail on its own.
    let database: TestDatabase
    let directoryDatabase: TestDatabase
    let directory: Directory
    let groupStore: TestGroupStore
    let groups: DeviceGroups
    let auditDatabase: TestDatabase
    let retiredStore: TestRetiredTokenStore
    let retired: RetiredTokens
    let idempotencyStore: TestIdempotencyStore
    let idempotent: IdempotentSends
    /// Sends what is due of batches when a test asks it to.
    let batchRunner: BatchRunner
    let metrics = TestMetrics()
    let logs = InMemoryLogHandler()
    let readiness = Readiness()
    let administration: Administration
    let audit: AuditLog
    let gate: LoadGate
    /// The number of pauses after a wrong admin token.
    let pauses = Observed(0)
    let dataListener: Listener
    let adminTokens: AdminTokens
    let sessions: ConsoleSessions
    let history: ConsoleHistory
    /// The text that `/metrics` shows.
    let metricsText = Observed("fcmgw_up 1\n")
    let adminListener: Listener
    private let script = Observed<[@Sendable (UpstreamCall) -> SendResult]>([])
    /// True while the upstream holds back its answers.
    private let isHeld = Observed(false)

    /// Starts a gateway, runs a body, and stops the gateway.
    ///
    /// `hold` is awaited before each answer of the message and topic upstreams.
    static func run<Result: Sendable>(
        limits: LimitPolicies = LimitPolicies(),
        auditCapacity: Int = 100_000,
        groupUpstream: any GroupUpstream = ScriptedGroupUpstream(),
        maxInFlight: Int = 4_096,
        tracer: RequestTracer = RequestTracer(),
        hold: @escaping @Sendable () async -> Void = {},
        _ body: @Sendable (TestGateway, _ key: String) async throws -> Result
    ) async throws -> Result {
        let gateway = try await TestGateway(
            limits: limits,
            auditCapacity: auditCapacity,
            groupUpstream: groupUpstream,
            maxInFlight: maxInFlight,
            tracer: tracer,
            hold: hold
        )
        return try await gateway.audit.whileRunning {
            try await gateway.directory.whileRunning {
                try await gateway.idempotent.whileRunning {
                    try await gateway.batchRunner.whileWriting {
                        let key = try await gateway.makeTenant("demo")
                        _ = try await gateway.makeTenant("other")
                        return try await body(gateway, key)
                    }
                }
            }
        }
    }

    private init(
        limits: LimitPolicies,
        auditCapacity: Int,
        groupUpstream: any GroupUpstream,
        maxInFlight: Int,
        tracer: RequestTracer,
        hold: @escaping @Sendable () async -> Void
    ) async throws {
        self.database = TestDatabase(clock: self.clock)
        self.directoryDatabase = TestDatabase(self.database)
        self.auditDatabase = TestDatabase(self.database)
        self.groupStore = TestGroupStore(in: TestDatabase(self.database))
        self.idempotencyStore = TestIdempotencyStore(in: TestDatabase(self.database))
        let metrics = GatewayMetrics(factory: self.metrics)
        self.gate = LoadGate(
            limits: LoadShedder.Limits(maxInFlight: maxInFlight, maxLag: .milliseconds(5)),
            listCalls: 4,
            subscriptionCalls: 4,
            metrics: metrics
        )
        let masterKey = try MasterKey.sample()
        let pepper = APIKey.Pepper.sample
        let script = self.script
        self.topics = ScriptedTopics(hold: hold)
        let isHeld = self.isHeld
        let upstream = ScriptedUpstream { call in
            await hold()
            try? await isHeld.wait { !$0 }
            let answer = script.change { $0.isEmpty ? nil : $0.removeFirst() } ?? ScriptedUpstream.accepting
            return answer(call)
        }
        self.upstream = upstream
        let logs = self.logs
        var logger = Logger(label: "test") { _ in logs }
        logger.logLevel = .trace
        let directory = try await Directory.sample(store: self.directoryDatabase.directoryStore, defaultLimits: limits)
        self.directory = directory
        self.audit = AuditLog.sample(
            store: self.auditDatabase.auditStore,
            clock: self.clock,
            configuration: .sample(queueCapacity: auditCapacity),
            metrics: metrics,
            logger: logger
        )
        self.retiredStore = TestRetiredTokenStore(in: TestDatabase(self.database))
        self.retired = .sample(
            store: self.retiredStore,
            clock: self.clock,
            metrics: metrics,
            logger: logger,
            profiles: { Array(directory.snapshot.tenants.values) }
        )
        self.administration = Administration(
            directory: directory,
            audit: self.audit,
            masterKey: masterKey,
            pepper: pepper,
            clock: self.clock
        )
        let limiter = MemoryRateLimiter.withoutJitter(maxEntries: 100_000, metrics: metrics)
        self.groups = DeviceGroups(
            store: self.groupStore,
            upstream: groupUpstream,
            limiter: limiter,
            audit: self.audit,
            clock: self.clock,
            lookUpTimeout: .seconds(600),
            nameTimeout: .seconds(600),
            metrics: metrics
        )
        let pipeline = SendPipeline(
            retired: self.retired,
            limiter: limiter,
            upstream: upstream,
            audit: self.audit,
            clock: self.clock,
            metrics: metrics,
            groups: self.groups
        )
        self.idempotent = .sample(
            pipeline: pipeline,
            store: self.idempotencyStore,
            clock: self.clock,
            metrics: metrics,
            logger: logger
        )
        let batchStore = TestDatabase(self.database).batchStore()
        let batchRunner = BatchRunner.sample(
            store: batchStore,
            sends: self.idempotent,
            limiter: limiter,
            directory: directory,
            clock: self.clock,
            metrics: metrics,
            logger: logger,
            decode: BatchMessage.command
        )
        self.batchRunner = batchRunner
        let batches = Batches(
            store: batchStore,
            runner: batchRunner,
            pipeline: pipeline,
            decode: BatchMessage.command
        )
        let auditAccess = AuditAccess(
            store: self.auditDatabase.auditStore,
            log: self.audit,
            limiter: limiter,
            clock: self.clock
        )
        self.dataListener = Listener.data(
            authenticator: Authenticator(directory: directory, pepper: pepper),
            pipeline: pipeline,
            idempotent: self.idempotent,
            batches: batches,
            topics: TopicPipeline(
                limiter: limiter,
                upstream: self.topics,
                audit: self.audit,
                clock: self.clock,
                metrics: metrics
            ),
            groups: self.groups,
            retired: RetiredTokenAccess(retired: self.retired, audit: self.audit, clock: self.clock),
            audit: auditAccess,
            auditCursors: AuditQuery.CursorSealer(auditKey: Secret("an audit key of enough bytes for tests")),
            clock: self.clock,
            metrics: HTTPMetrics(metrics, listener: "data"),
            gate: self.gate,
            requestDeadline: DurationSetting(.seconds(20)),
            tracer: tracer,
            logger: logger
        )
        self.adminTokens = AdminTokens(
            configured: Secret(Self.adminToken),
            store: TestDatabase(self.database).adminTokenStore,
            pepper: pepper,
            audit: self.audit,
            clock: self.clock,
            maxStale: .seconds(900)
        )
        self.sessions = ConsoleSessions(
            tokens: self.adminTokens,
            store: TestDatabase(self.database).consoleSessionStore,
            pepper: pepper,
            clock: self.clock,
            maxStale: .seconds(900)
        )
        let exposition = MetricsExposition(contentType: "text/plain; version=0.0.4; charset=utf-8") { [metricsText] in
            Array(metricsText.current.utf8)
        }
        self.history = ConsoleHistory(exposition)
        let pauses = self.pauses
        self.adminListener = Listener.admin(
            hosts: AllowedHosts([Self.host]),
            tokens: self.adminTokens,
            administration: self.administration,
            prover: ScriptedProver { kind, profile in
                profile.storedCredentials.contains { $0.kind == kind }
                    ? CredentialReport(.keyRefused, "FCM refuses it", upstreamCode: "401")
                    : CredentialReport(.missing, "There is none")
            },
            tokenHosts: Setting(.google),
            batches: batches,
            audit: auditAccess,
            auditCursors: AuditQuery.CursorSealer(auditKey: Secret("an audit key of enough bytes for tests")),
            console: Console(
                sessions: self.sessions,
                history: self.history,
                limiter: limiter,
                whenRedisFails: "local",
                retired: self.retired,
                pipeline: pipeline
            ),
            manual: "/nowhere",
            readiness: self.readiness,
            exposition: exposition,
            clock: self.clock,
            metrics: HTTPMetrics(metrics, listener: "admin"),
            tracer: tracer,
            pause: { pauses.change { $0 += 1 } },
            logger: logger
        )
    }

    // MARK: Asking

    /// Asks the data listener, with the key as a bearer token.
    func data(
        _ method: HTTPRequest.Method,
        _ path: String,
        key: String?,
        body: String = "",
        headers: [String: String] = [:],
        clientNames: [String] = [],
        lag: Duration = .zero
    ) async -> Answer {
        await Self.ask(
            self.dataListener,
            method,
            path,
            bearer: key,
            body: body,
            headers: headers,
            clientNames: clientNames,
            lag: lag
        )
    }

    /// Posts a message for `demo`.
    func send(_ body: String, key: String?, headers: [String: String] = [:]) async -> Answer {
        await self.data(.post, "/v1/tenants/demo/messages", key: key, body: body, headers: headers)
    }

    func admin(
        _ method: HTTPRequest.Method,
        _ path: String,
        token: String? = TestGateway.adminToken,
        body: String = "",
        headers: [String: String] = [:],
        host: String? = TestGateway.host
    ) async -> Answer {
        let listener = AdminResponder(self.adminListener)
        return await Self.ask(listener, method, path, bearer: token, body: body, headers: headers, host: host)
    }

    /// Asks the admin listener for a path under `/admin/`, else the data listener with a tenant's key.
    func ask(
        _ method: HTTPRequest.Method,
        _ path: String,
        key: String?,
        body: String = "",
        headers: [String: String] = [:]
    ) async -> Answer {
        path.hasPrefix("/admin/")
            ? await self.admin(method, path, body: body, headers: headers)
            : await self.data(method, path, key: key, body: body, headers: headers)
    }

    /// All pages of a list, read by its cursors.
    func pages(_ path: String, key: String? = nil) async throws -> [JSON] {
        var pages: [JSON] = []
        var cursor = ""
        repeat {
            let answer = await self.ask(.get, path + cursor, key: key)
            #expect(answer.status == 200)
            pages.append(try answer.json)
            cursor = pages.last?["next_cursor"]?.text.map { "&cursor=\($0)" } ?? ""
        } while !cursor.isEmpty && pages.count < 100
        return pages
    }

    /// Flushes the audit and returns the records of `demo` that match a query, newest first.
    func records(_ query: String, key: String) async throws -> [JSON] {
        try await self.settleAudit()
        let answer = await self.data(.get, "/v1/tenants/demo/audit?\(query)", key: key)
        #expect(answer.status == 200, "\(query)")
        return try answer.json["records"]?.elements ?? []
    }

    /// Asks a listener; a header with an empty value is left out.
    static func ask(
        _ listener: any HTTPServerResponder,
        _ method: HTTPRequest.Method,
        _ path: String,
        bearer: String?,
        body: String = "",
        headers: [String: String] = [:],
        clientNames: [String] = [],
        isTLS: Bool = false,
        remoteAddress: String = "192.0.2.1",
        lag: Duration = .zero,
        host: String? = TestGateway.host
    ) async -> Answer {
        var all = headers
        if !body.isEmpty, all["Content-Type"] == nil { all["Content-Type"] = "application/json" }
        if let bearer, all["Authorization"] == nil { all["Authorization"] = "Bearer \(bearer)" }
        var fields = HTTPFields()
        for (name, value) in all where !value.isEmpty {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        let request = HTTPServerRequest(
            head: HTTPRequestHead(
                HTTPRequest(method: method, scheme: "http", authority: host, path: path, headerFields: fields)
            ),
            body: ByteBuffer(string: body),
            connection: HTTPServerRequest.ConnectionInfo(
                remoteAddress: remoteAddress,
                isTLS: isTLS || !clientNames.isEmpty,
                clientNames: clientNames,
                eventLoop: MultiThreadedEventLoopGroup.singleton.any()
            ),
            lag: lag
        )
        return Answer(await listener.respond(to: request))
    }

    // MARK: Setting up

    /// Sets the upstream's next answers; after them it accepts everything again.
    func answer(_ results: SendResult...) {
        for result in results { self.answer { _ in result } }
    }

    /// Computes the upstream's next answer from the call.
    func answer(_ responder: @escaping @Sendable (UpstreamCall) -> SendResult) {
        self.script.change { $0.append(responder) }
    }

    /// Holds back the upstream's answers, or releases them.
    func hold(_ isHeld: Bool = true) {
        self.isHeld.change { $0 = isHeld }
    }

    /// Makes a tenant with a key that has every scope.
    func makeTenant(_ name: String) async throws -> String {
        let id = try TenantID.sample(name)
        _ = try await self.administration.put(
            Tenant.Draft(displayName: name, upstream: .legacy),
            id: id,
            origin: Self.origin
        )
        return try await self.makeKey(scopes: Set(Scope.allCases), tenant: name)
    }

    func makeKey(
        scopes: Set<Scope>,
        topicPrefixes: [String] = [],
        expiresAt: Timestamp? = nil,
        tenant: String = "demo"
    ) async throws -> String {
        let (key, _) = try await self.administration.createKey(
            APIKey.Draft(name: "test", scopes: scopes, topicPrefixes: topicPrefixes, expiresAt: expiresAt),
            tenant: try .sample(tenant),
            origin: Self.origin
        )
        return key.secret.revealText()
    }

    /// The stored audit records, of one action if given.
    func auditRecords(of action: String? = nil) async throws -> [AuditRecord] {
        try await self.auditDatabase.auditRecords().filter { action == nil || $0.action == action }
    }

    /// Waits until all records so far are in the audit's store.
    func settleAudit() async throws {
        try await self.audit.commit(.sample("test.barrier"))
    }
}
