import EventLoopHTTP
import FCMModel
import Foundation
import GatewayTestKit
import GatewayTracing
import PrometheusMetrics
import Testing

@testable import GatewayCore
@testable import GatewayHTTP
@testable import GatewayService
@testable import GatewayStorage
@testable import GatewayUpstream

/// Bounds the number of series for any number of tenants, tokens and topics.
@Suite("The number of series")
struct SeriesBoundTests {
    private static let tenantCount = 10_000
    private static let tokensPerTenant = 100
    private static let mostSeries = 5_000
    /// The tenants with several outcomes: twice as many as there are labels.
    private static let busyCount = 400
    private static let methods = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "BREW"]

    /// A fake FCM that refuses a recipient with the code after its last slash, and accepts the others.
    private struct Upstream: UpstreamSender {
        func refusal(of target: Target, for profile: TenantProfile) -> Refusal? { nil }

        func requests(of call: UpstreamCall, limit: Int) -> [Message.Request] { [] }

        func send(_ call: UpstreamCall) async -> SendResult {
            let recipients =
                switch call.target {
                case .token(let text), .installation(let text), .notificationKey(let text), .deviceGroup(let text):
                    [text]
                case .tokens(let texts), .installations(let texts): texts
                case .topic, .condition: [""]
                }
            let outcomes = recipients.map { recipient in
                let code = recipient.split(separator: "/").last.flatMap { OutcomeCode(rawValue: String($0)) }
                return code.map { RecipientOutcome.rejected(Rejection(code: $0)) }
                    ?? .accepted(Acceptance(messageID: "1"))
            }
            return SendResult(outcomes, upstreamCode: "200")
        }
    }

    private let registry = PrometheusRegistry(
        descriptions: GatewayMetric.allCases.map(MetricDescription.init),
        processMetrics: ProcessMetrics()
    )
    private let metrics: GatewayMetrics
    private let clock = ManualClock()
    private let principals: [Principal]

    init() throws {
        self.metrics = GatewayMetrics(factory: self.registry)
        // Separate keys and salts would take longer than the rest of the test.
        let first = try Principal.sample(tenant: "tenant-0")
        self.principals =
            [first]
            + (try (1..<Self.tenantCount)
                .map { number in
                    let profile = TenantProfile(
                        tenant: try .sample("tenant-\(number)"),
                        legacyCredential: nil,
                        v1Credential: nil,
                        storedCredentials: [],
                        limits: LimitPolicies(),
                        pseudonymizer: first.profile.pseudonymizer
                    )
                    return Principal(profile: profile, key: first.key)
                })
    }

    @Test("A million tokens of 10,000 tenants with all outcomes make at most 5,000 series, without tokens")
    func bounded() async throws {
        let attempts = try await self.sendThroughThePipeline()
        let counted = try await self.countEverySend()
        try await self.manageTopicsAndGroups()
        await self.openBreakers()
        let requests = try await self.serveEverything()
        self.measureTheRest()

        let text = self.registry.render()
        let samples = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(samples.count <= Self.mostSeries)
        // The lower bound proves that the metrics were recorded.
        #expect(samples.count > 4_000)
        #expect(!text.contains("canary"))
        #expect(!text.contains("metrics_registration_clashes_total"))
        #expect(!text.contains("Not described."))
        for metric in GatewayMetric.allCases { #expect(text.contains("# TYPE \(metric.rawValue) "), "\(metric)") }
        // Tenants that share a label are counted too.
        #expect(Self.sum(of: "fcmgw_messages_total{", in: samples) == attempts + counted)
        #expect(counted >= Self.tenantCount * Self.tokensPerTenant)
        #expect(Self.sum(of: "fcmgw_http_request_duration_seconds_count{", in: samples) == requests)
        for label in ["tenant", "project"] {
            #expect(Set(samples.compactMap { Self.value(of: label, in: $0) }).count == 201, "\(label)")
        }
        // The last tenant with a label has its own series of watched outcomes, although no room was left.
        for outcome in GatewayMetrics.TenantLabels.watchedOutcomes {
            #expect(
                samples.contains {
                    $0.hasPrefix("fcmgw_messages_total{")
                        && Self.value(of: "tenant", in: $0) == "tenant-\(GatewayMetrics.TenantLabels.maxLabels - 1)"
                        && Self.value(of: "outcome", in: $0) == Substring(outcome)
                },
                "\(outcome)"
            )
        }
    }

    /// Sends one tenant's messages of every outcome through the pipeline, and returns the number of recipients.
    private func sendThroughThePipeline() async throws -> Int {
        let audit = AuditLog.sample(
            store: TestDatabase().auditStore,
            clock: self.clock,
            configuration: .sample(queueCapacity: 100_000),
            metrics: self.metrics
        )
        let pipeline = SendPipeline(
            retired: RetiredTokens.sample(clock: self.clock, metrics: self.metrics),
            limiter: MemoryRateLimiter.withoutJitter(metrics: self.metrics),
            upstream: Upstream(),
            audit: audit,
            clock: self.clock,
            metrics: self.metrics
        )
        return try await audit.whileRunning {
            var recipients = 0
            for code in OutcomeCode.allCases {
                for target in Self.targets(ending: code.rawValue) {
                    _ = await pipeline.send(.sample(from: self.principals[0], to: target))
                    recipients += target.recipientCount
                }
            }
            return recipients
        }
    }

    /// Counts the outcomes of over a million recipients and returns their number. Tenants with every outcome come
    /// first, while there is room.
    private func countEverySend() async throws -> Int {
        let metrics = TenantCounters(.messages, self.metrics)
        let kinds: [Target] = [
            .token("canary"), .tokens(["canary"]), .installation("canary"), .installations(["canary"]),
            .topic(try #require(TopicName("canary"))), .condition(try TopicCondition(parsing: "'canary' in topics")),
            .notificationKey("canary"),
        ]
        #expect(Set(kinds.map(\.kind)) == Set(Target.Kind.allCases))
        var recipients = 0
        for principal in self.principals[..<10] {
            for target in kinds {
                let command = SendCommand.sample(from: principal, to: target)
                for code in OutcomeCode.allCases {
                    metrics.count(command, SendResult(.refused(Refusal(code))))
                    recipients += 1
                }
            }
            await Task.yield()
        }
        let tokens = Target.tokens((0..<Self.tokensPerTenant).map { "canary-\($0)" })
        let codes: [OutcomeCode] = [.upstreamUnavailable, .upstreamCredentials, .unregistered]
        for (number, principal) in self.principals.enumerated() {
            let command = SendCommand.sample(from: principal, to: tokens)
            for code in number < Self.busyCount ? codes : [.unregistered] {
                metrics.count(command, SendResult(.refused(Refusal(code))))
                recipients += Self.tokensPerTenant
            }
            if number.isMultiple(of: 100) { await Task.yield() }
        }
        // A tenant without a label has every outcome too.
        for target in kinds {
            let command = SendCommand.sample(from: self.principals[Self.tenantCount - 1], to: target)
            for code in OutcomeCode.allCases {
                metrics.count(command, SendResult(.refused(Refusal(code))))
                recipients += 1
            }
        }
        return recipients
    }

    private static func targets(ending code: String) -> [Target] {
        [
            .token("canary/\(code)"), .tokens(["canary-a/\(code)", "canary-b"]), .installation("canary/\(code)"),
            .installations(["canary/\(code)"]),
        ]
    }

    private func manageTopicsAndGroups() async throws {
        let topics = TenantCounters(.subscriptionChanges, self.metrics)
        let groups = TenantCounters(.deviceGroupRequests, self.metrics, watching: [])
        let retired = RetiredTokens.sample(clock: self.clock, metrics: self.metrics)
        let topic = try #require(TopicName("canary"))
        let everything: [SubscriptionOutcome] =
            [.done] + OutcomeCode.allCases.map { .rejected(Rejection(code: $0)) }
        let watched: [SubscriptionOutcome] = [.done, .rejected(.upstreamUnavailable), .rejected(.upstreamCredentials)]
        for (number, principal) in self.principals.enumerated() {
            retired.spikes.set(1, of: principal.profile.id)
            if number.isMultiple(of: 100) { await Task.yield() }
            let isLast = number == Self.tenantCount - 1
            guard number < Self.busyCount || isLast else { continue }
            for change in SubscriptionChange.allCases {
                let caller = Caller(principal: principal, origin: .sample, deadline: .now)
                let call = SubscriptionCall(change, of: ["canary-1"], to: topic, by: caller)
                topics.count(call, .success(isLast ? everything : watched))
            }
            let actions = AuditRecord.Action.allCases.filter {
                isLast ? $0.scope == .manageDeviceGroups : $0 == .deviceGroupPut
            }
            for action in actions {
                for outcome in ["done"] + (isLast ? OutcomeCode.allCases.map(\.rawValue) : []) {
                    groups.count(action, of: principal.profile.id, outcome: outcome)
                }
            }
        }
    }

    private func openBreakers() async {
        let resilience = UpstreamHealth.Metrics(self.metrics)
        for api in FCMAPI.allCases {
            for principal in self.principals[..<Self.busyCount] {
                resilience.show(.open, api, of: principal.profile.id)
            }
        }
        await Task.yield()
        for api in FCMAPI.allCases {
            let calls = AttemptRecorder.Metrics(api, self.metrics)
            calls.began()
            calls.answered(in: .zero)
            for failure in HTTPClientError.Code.allCases {
                calls.began()
                calls.failed(failure.rawValue, in: .zero)
            }
        }
    }

    /// Records every documented status of every operation, and every method of every route. Returns the number of
    /// requests.
    private func serveEverything() async throws -> Int {
        var requests = 0
        for (listener, file) in [("data", "gateway.yaml"), ("admin", "admin.yaml")] {
            let metrics = HTTPMetrics(self.metrics, listener: listener)
            func serve(_ method: String, _ route: String, _ status: Int) {
                metrics.began()
                metrics.ended(route: route, method: method, status: status, in: .milliseconds(1))
                requests += 1
            }
            let operations = try Self.operations(in: file)
            #expect(operations.count > 20)
            #expect(operations.map(\.statuses.count).reduce(0, +) > 250)
            for method in Self.methods {
                for status in [400, 404, 503] { serve(method, "none", status) }
                for route in Set(operations.map(\.route)) { serve(method, route, 405) }
            }
            for operation in operations {
                for status in operation.statuses { serve(operation.method, operation.route, status) }
            }
            await Task.yield()
            metrics.authenticated()
            metrics.refused(result: "refused")
        }
        return requests
    }

    /// Makes the metrics that the other steps don't record.
    private func measureTheRest() {
        _ = StoreMetrics(store: "sqlite", self.metrics)
        for metric: GatewayMetric in [.configLastReloadSuccessful, .draining] { _ = self.metrics.gauge(metric) }
        _ = self.metrics.gauge(.buildInfo, "1")
        _ = self.metrics.counters(.idempotency, by: IdempotentSends.Event.self)
        _ = self.metrics.counters(.oauthRefreshes, by: TokenRefresh.self)
        _ = self.metrics.gauges(.directoryRefusedRows, by: Directory.RefusedRow.Kind.self)
        _ = self.metrics.gauge(.auditChanged)
        _ = self.metrics.gauge(.auditLastCheckpoint)
        _ = self.metrics.gauge(.auditCheckpointInterval)
        _ = self.metrics.counter(.auditCheckpointFailures)
        _ = self.metrics.counter(.auditRecordsRemoved)
        _ = self.metrics.counter(.auditChainsClosed)
        _ = self.metrics.gauge(.auditSinkDelivered)
        _ = self.metrics.counter(.auditSinkFailures)
        _ = LoadGate(limits: LoadShedder.Limits(maxInFlight: 1, maxLag: .zero), metrics: self.metrics)
        _ = SpanQueue(metrics: self.metrics)
        _ = BatchMetrics(self.metrics)
        // The metrics of replicas on PostgreSQL.
        _ = PostgreSQLMetrics(self.metrics)
        for kind in [Lease.Counters.Kind.request, .group] { _ = Lease.Counters(kind, self.metrics) }
        _ = self.metrics.gauge(.cacheAge, "directory")
        _ = self.metrics.gauge(.replicas)
    }

    private struct Operation {
        var method: String
        var route: String
        var statuses: [Int] = []
    }

    /// The operations of an OpenAPI file, with the statuses of their answers.
    private static func operations(in file: String) throws -> [Operation] {
        let text = try String(contentsOf: URL.inRepository("openapi/\(file)"), encoding: .utf8)
        var route = ""
        var operations: [Operation] = []
        for line in text.split(separator: "\n") {
            let name = line.drop { $0 == " " }.prefix { $0 != ":" }
            switch line.prefix(while: { $0 == " " }).utf8.count {
            case 2 where name.hasPrefix("/"):
                route = String(line.dropFirst(2).dropLast())
            case 4 where ["get", "post", "put", "delete", "head"].contains(name):
                operations.append(Operation(method: name.uppercased(), route: route))
            case 8:
                if name.utf8.count == 5, let status = Int(name.dropFirst().dropLast()), !operations.isEmpty {
                    operations[operations.count - 1].statuses.append(status)
                }
            default: break
            }
        }
        return operations
    }

    private static func sum(of name: String, in samples: [Substring]) -> Int {
        samples.filter { $0.hasPrefix(name) }
            .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
            .reduce(0, +)
    }

    private static func value(of label: String, in sample: Substring) -> Substring? {
        guard let start = sample.range(of: "\(label)=\"")?.upperBound else { return nil }
        return sample[start...].prefix { $0 != "\"" }
    }
}
