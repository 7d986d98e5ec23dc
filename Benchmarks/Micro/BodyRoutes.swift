import EventLoopHTTP
import FCMModel
import GatewayCore
import GatewayHTTP
import GatewayTestKit
import HTTPTypes
import Logging
import NIOCore
import NIOPosix

/// A route that takes a body, and the places in its body where much can stand.
struct BodyRoute: Sendable {
    let name: String
    let mediaType: String
    var method = HTTPRequest.Method.post
    let path: String
    /// The most that the route takes, in bytes.
    var maxBytes = 1024 * 1024
    /// Bodies in which `%` stands for what is searched for.
    let places: [String]

    var isForm: Bool { self.mediaType != Self.jsonType }
    var isAdmin: Bool { self.path.hasPrefix("/admin/") }

    private static let jsonType = "application/json"
    private static let formType = "application/x-www-form-urlencoded"
    private static let admin = "/admin/v1/tenants/legacy"
    /// What routes take that take no lists.
    static let small = 64 * 1024

    /// Every route that takes a body, once for each media type and upstream that changes how it is read.
    ///
    /// The routes that explain leave out lists, which they read as sends do: what they do with one behind the reading
    /// is what their quota is charged for.
    static let all: [BodyRoute] = [
        Self.json("POST …/messages", "/v1/tenants/legacy/messages", Self.restPlaces),
        Self.json(
            "POST …/messages/explain",
            "/v1/tenants/v1/messages/explain",
            Self.restPlaces.filter { !$0.contains("tokens") }
        ),
        Self.json(
            "POST …/messages/explain?form=legacy",
            "/v1/tenants/v1/messages/explain?form=legacy",
            Self.legacyPlaces.filter { !$0.contains("registration_ids") }
        ),
        Self.json("POST …/subscriptions", "/v1/tenants/legacy/topics/news/subscriptions", Self.tokenPlaces),
        Self.json("PUT …/device-groups/g", "/v1/tenants/legacy/device-groups/g", Self.tokenPlaces, .put, Self.small),
        Self.json("POST /fcm/send", "/fcm/send", Self.legacyPlaces),
        BodyRoute(name: "POST /fcm/send", mediaType: Self.formType, path: "/fcm/send", places: Self.formPlaces),
        Self.json("POST /fcm/notification", "/fcm/notification", Self.groupPlaces, .post, Self.small),
        Self.json("POST /iid/v1:batchAdd", "/iid/v1:batchAdd", Self.batchPlaces),
        Self.json("POST …/messages:send, v1 upstream", "/v1/projects/v1/messages:send", Self.v1Places),
        Self.json("POST …/messages:send, legacy upstream", "/v1/projects/legacy/messages:send", Self.v1Places),
        Self.json(
            "POST …/topicSubscriptions",
            "/v1/projects/v1/registrations/t/topicSubscriptions",
            ["%"],
            .post,
            Self.small
        ),
        Self.json("PUT /admin/…/{tenant}", Self.admin, Self.tenantPlaces, .put, Self.small),
        Self.json(
            "PUT …/credentials/legacy",
            Self.admin + "/credentials/legacy",
            Self.serverKeyPlaces,
            .put,
            Self.small
        ),
        Self.json("PUT …/credentials/v1", Self.admin + "/credentials/v1", Self.accountPlaces, .put, Self.small),
        Self.json("POST …/keys", Self.admin + "/keys", Self.keyPlaces, .post, Self.small),
        Self.json("PUT …/limits", Self.admin + "/limits", Self.limitPlaces, .put, Self.small),
    ]

    private static func json(
        _ name: String,
        _ path: String,
        _ places: [String],
        _ method: HTTPRequest.Method = .post,
        _ maxBytes: Int = 1024 * 1024
    ) -> BodyRoute {
        BodyRoute(name: name, mediaType: Self.jsonType, method: method, path: path, maxBytes: maxBytes, places: places)
    }

    /// A pattern with each of some names in the place of `#`.
    private static func each(_ pattern: String, _ names: String...) -> [String] {
        names.map { pattern.replacing("#", with: $0) }
    }

    private static let tokenPlaces = Self.each("#", "%", #"{"tokens":%}"#)
    private static let restPlaces: [String] =
        Self.each(##"{"#":%}"##, "token", "tokens", "condition", "topic", "device_group")
        + Self.each(##"{"token":"t","#":%}"##, "data", "notification", "collapse_key", "priority", "ttl")
        + Self.each(##"{"token":"t","notification":{"#":%}}"##, "title", "badge", "color", "title_loc_args")
        + Self.each("#", "%")
    private static let legacyPlaces: [String] =
        Self.each(##"{"#":%}"##, "to", "registration_ids", "condition", "notification_key")
        + Self.each(##"{"to":"t","#":%}"##, "data", "notification", "priority", "time_to_live", "unknown")
        + Self.each(##"{"to":"t","notification":{"#":%}}"##, "title", "badge", "title_loc_args", "unknown")
        + Self.each("#", "%", #"{"to":"t","data":{"k":%}}"#)
    private static let v1Places: [String] =
        Self.each(##"{"message":{"#":%}}"##, "token", "condition", "topic")
        + Self.each(##"{"message":{"token":"t","#":%}}"##, "data", "notification", "android", "apns", "webpush")
        + Self.each(##"{"message":{"token":"t","android":{"#":%}}}"##, "priority", "ttl", "data", "notification")
        + Self.each(##"{"message":{"token":"t","apns":{"#":%}}}"##, "headers", "payload")
        + Self.each(##"{"message":{"token":"t","apns":{"payload":{"aps":{"#":%}}}}}"##, "alert", "sound")
        + Self.each(##"{"message":{"token":"t","webpush":{"#":%}}}"##, "headers", "notification", "data")
        + Self.each("#", "%", #"{"message":%}"#)
    private static let formPlaces =
        Self.each("#", "%", "registration_id=%", "registration_id=t&%")
        + Self.each("registration_id=t&#=%", "data.k", "dry_run", "time_to_live", "collapse_key")
    private static let groupPlaces: [String] =
        Self.each("#", "%", #"{"operation":%}"#)
        + Self.each(##"{"operation":"add","#":%}"##, "notification_key_name", "notification_key", "registration_ids")
    private static let batchPlaces =
        Self.each("#", "%", #"{"to":%}"#, #"{"to":"/topics/news","registration_tokens":%}"#)
    private static let tenantPlaces =
        Self.each("#", "%") + Self.each(##"{"#":%}"##, "display_name", "upstream", "sender_id", "client_names")
    private static let serverKeyPlaces =
        Self.each("#", "%", #"{"server_key":%}"#, #"{"server_key":"k","endpoint":%}"#)
    private static let accountPlaces: [String] =
        Self.each("#", "%", #"{"service_account":%}"#)
        + Self.each(##"{"service_account":{"#":%}}"##, "type", "private_key", "client_email", "unknown")
    private static let keyPlaces =
        Self.each("#", "%") + Self.each(##"{"#":%}"##, "name", "scopes", "topic_prefixes", "expires_at", "key")
    private static let limitPlaces = Self.each("#", "%", #"{"device":%}"#, #"{"device":[%]}"#)
}

/// Both listeners over doubles.
///
/// The audit has ended, so that nothing is done behind the reading of a body.
struct BodyListeners: Sendable {
    private static let adminToken = "admin-token-of-the-benchmark-0123456789"

    private let data: any HTTPServerResponder
    private let admin: any HTTPServerResponder
    /// A key of each tenant, all scopes.
    private let keys: [String: String]

    init() async throws {
        let logger = Logger(label: "micro") { _ in SwiftLogNoOpLogHandler() }
        let metrics = GatewayMetrics()
        let clock = ManualClock()
        let masterKey = try MasterKey.sample()
        let pepper = APIKey.Pepper.sample
        let database = TestDatabase(clock: clock)
        let auditStore = database.auditStore
        guard let ample = RatePolicy(rate: 1_000_000, periodSeconds: 1, burst: 1_000_000) else { preconditionFailure() }
        let directory = try await Directory.sample(
            store: database.directoryStore,
            defaultLimits: LimitPolicies(tenant: [ample])
        )
        let cursors = AuditQuery.CursorSealer(auditKey: .sample("audit"))
        let audit = AuditLog.sample(store: auditStore, clock: clock)
        let retired = RetiredTokens.sample(store: TestRetiredTokenStore(in: database), clock: clock)
        let administration = Administration(
            directory: directory,
            audit: audit,
            masterKey: masterKey,
            pepper: pepper,
            clock: clock
        )
        let limiter = MemoryRateLimiter()
        let groups = DeviceGroups(
            store: TestGroupStore(in: database),
            upstream: ScriptedGroupUpstream(),
            limiter: limiter,
            audit: audit,
            clock: clock
        )
        let pipeline = SendPipeline(
            retired: retired,
            limiter: limiter,
            upstream: ScriptedUpstream { ScriptedUpstream.accepting($0) },
            audit: audit,
            clock: clock,
            groups: groups
        )
        let auditAccess = AuditAccess(store: auditStore, log: audit, limiter: limiter, clock: clock)
        let idempotent = IdempotentSends.sample(
            pipeline: pipeline,
            store: TestIdempotencyStore(in: database),
            clock: clock
        )
        let batchRunner = BatchRunner.sample(
            store: database.batchStore(),
            sends: idempotent,
            limiter: limiter,
            directory: directory,
            clock: clock,
            decode: BatchMessage.command
        )
        let batches = Batches(
            store: database.batchStore(),
            runner: batchRunner,
            pipeline: pipeline,
            decode: BatchMessage.command
        )
        self.data = Listener.data(
            authenticator: Authenticator(directory: directory, pepper: pepper),
            pipeline: pipeline,
            idempotent: idempotent,
            batches: batches,
            topics: TopicPipeline(
                limiter: limiter,
                upstream: ScriptedTopics(),
                audit: audit,
                clock: clock,
                metrics: metrics
            ),
            groups: groups,
            retired: RetiredTokenAccess(retired: retired, audit: audit, clock: clock),
            audit: auditAccess,
            auditCursors: cursors,
            clock: clock,
            metrics: HTTPMetrics(metrics, listener: "data"),
            gate: LoadGate(
                limits: LoadShedder.Limits(maxInFlight: 4_096, maxLag: .milliseconds(50)),
                listCalls: 4,
                subscriptionCalls: 4
            ),
            requestDeadline: DurationSetting(.seconds(20)),
            logger: logger
        )
        self.admin = Listener.admin(
            hosts: AllowedHosts(["gateway.test"]),
            tokens: AdminTokens(
                configured: Secret(Self.adminToken),
                store: database.adminTokenStore,
                pepper: pepper,
                audit: audit,
                clock: clock,
                maxStale: .seconds(900)
            ),
            administration: administration,
            prover: ScriptedProver { _, _ in CredentialReport(.missing, "There is none") },
            tokenHosts: Setting(.google),
            batches: batches,
            audit: auditAccess,
            auditCursors: cursors,
            readiness: Readiness(),
            exposition: MetricsExposition(contentType: "text/plain") { [] },
            clock: clock,
            metrics: HTTPMetrics(metrics, listener: "admin"),
            logger: logger
        )
        self.keys = try await audit.whileRunning {
            try await directory.whileRunning {
                var keys: [String: String] = [:]
                for kind in UpstreamKind.allCases {
                    let origin = RequestOrigin(method: "PUT", requestID: "set-up")
                    let id = try TenantID.sample(kind.rawValue)
                    _ = try await administration.put(
                        Tenant.Draft(displayName: kind.rawValue, upstream: kind),
                        id: id,
                        origin: origin
                    )
                    let draft = APIKey.Draft(name: "micro", scopes: Set(Scope.allCases))
                    let (key, _) = try await administration.createKey(draft, tenant: id, origin: origin)
                    keys[kind.rawValue] = key.secret.revealText()
                }
                return keys
            }
        }
    }

    /// A request, made ready beforehand.
    func request(_ route: BodyRoute, _ body: ByteBuffer) -> HTTPServerRequest {
        let tenant =
            route.path.contains("/v1/tenants/v1/") || route.path.hasPrefix("/v1/projects/v1/") ? "v1" : "legacy"
        let credential = route.isAdmin ? Self.adminToken : self.keys[tenant] ?? ""
        return HTTPServerRequest(
            head: HTTPRequestHead(
                HTTPRequest(
                    method: route.method,
                    scheme: "http",
                    authority: "gateway.test",
                    path: route.path,
                    headerFields: [.authorization: "Bearer \(credential)", .contentType: route.mediaType]
                )
            ),
            body: body,
            connection: HTTPServerRequest.ConnectionInfo(
                remoteAddress: "192.0.2.1",
                isTLS: false,
                clientNames: [],
                eventLoop: MultiThreadedEventLoopGroup.singleton.any()
            ),
            lag: .zero
        )
    }

    /// How long a request is worked on.
    func time(_ request: HTTPServerRequest, isAdmin: Bool) async -> Duration {
        let start = ContinuousClock.now
        let response = await (isAdmin ? self.admin : self.data).respond(to: request)
        let elapsed = ContinuousClock.now - start
        precondition(response.status.code != 401, "the benchmark's own key is refused")
        return elapsed
    }
}
