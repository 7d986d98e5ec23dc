import EventLoopHTTP
import GatewayCore
import GatewayTestKit
import Logging
import MetricsTestKit
import Testing

@testable import GatewayHTTP

struct ServerRefusalsTests {
    /// A refusal by the HTTP server, with its answer and its counter.
    struct Case: Sendable {
        var refusal: HTTPServerRefusal
        var status: Int
        var code: String
        var reason: String
        var isRetryable: Bool

        init(_ refusal: HTTPServerRefusal, _ status: Int, _ code: String, _ reason: String, isRetryable: Bool = false) {
            (self.refusal, self.status, self.code) = (refusal, status, code)
            (self.reason, self.isRetryable) = (reason, isRetryable)
        }
    }

    private static let cases: [Case] = [
        Case(.badRequest(reason: "The request has no Host."), 400, "bad_request", "bad_request"),
        Case(.uriTooLong, 414, "uri_too_long", "uri_too_long"),
        Case(.headerTooLarge, 431, "header_too_large", "header_too_large"),
        Case(.bodyTooLarge, 413, "body_too_large", "body_too_large"),
        Case(.headTimeout, 408, "request_timeout", "head_timeout", isRetryable: true),
        Case(.bodyTimeout, 408, "request_timeout", "body_timeout", isRetryable: true),
        Case(.unsupportedTransferEncoding, 501, "bad_request", "transfer_encoding"),
        Case(.httpVersionNotSupported, 505, "bad_request", "http_version"),
        Case(.expectationFailed, 417, "bad_request", "expectation"),
        Case(.tooManyConnections, 503, "overloaded", "too_many_connections", isRetryable: true),
    ]

    @Test("A refusal by the HTTP server is answered as a problem with its status", arguments: cases)
    func refusals(expected: Case) throws {
        let metrics = TestMetrics()
        let listener = Listener.withoutRoutes(metrics: metrics)
        let answer = Answer(listener.response(to: expected.refusal, HTTPRefusedRequest(remoteAddress: nil)))
        #expect(answer.status == expected.status)
        let problem = try answer.problem()
        #expect(problem["code"]?.text == expected.code)
        #expect(problem["detail"]?.text == expected.refusal.reason)
        #expect(problem["retryable"] == .bool(expected.isRetryable))
        #expect(problem["action"]?.text == (expected.isRetryable ? "wait" : "fix_request"))
        #expect(answer.header("Retry-After") == (expected.status == 503 ? "5" : nil))
        let counter = try metrics.expectCounter("fcmgw_http_rejected_total", [("reason", expected.reason)])
        #expect(counter.totalValue == 1)
    }

    @Test(
        "A body beyond the buffer limit is refused in the format of its route and counted as shed",
        arguments: [
            ("/v1/tenants/acme/messages", "application/problem+json"), ("/fcm/send?a=b", "text/plain; charset=UTF-8"),
            ("/v1/projects/p/messages:send", "application/json; charset=UTF-8"), ("/", "application/problem+json"),
        ]
    )
    func bufferedBytes(path: String, contentType: String) async throws {
        try await TestGateway.run { gateway, _ in
            let refusal = HTTPServerRefusal.tooManyBufferedBytes(path: Array(path.utf8))
            let answer = Answer(gateway.dataListener.response(to: refusal, HTTPRefusedRequest(remoteAddress: nil)))
            #expect(answer.status == 503)
            #expect(answer.header("Content-Type") == contentType)
            #expect(["1", "2", "3"].contains(answer.header("Retry-After")))
            let shed = try gateway.metrics.expectCounter("fcmgw_shed_total", [("reason", "buffered_bytes")])
            #expect(shed.totalValue == 1)
            let reason = [("reason", "too_many_buffered_bytes")]
            #expect(try gateway.metrics.expectCounter("fcmgw_http_rejected_total", reason).totalValue == 1)
        }
    }

    @Test("Every reason has a counter from the start")
    func startingReasons() {
        let metrics = TestMetrics()
        _ = Listener.withoutRoutes(metrics: metrics)
        let counters = metrics.counters(label: "fcmgw_http_rejected_total")
        let reasons = Set(counters.compactMap { $0.dimensions.first?.1 })
        #expect(reasons == Set(Self.cases.map(\.reason) + ["too_many_buffered_bytes"] + Self.closeReasons))
        #expect(counters.allSatisfy { $0.totalValue == 0 })
    }

    private static let closeReasons = HTTPServerCloseReason.allCases.map(\.rawValue)

    @Test("A connection closed without an answer is counted by its reason", arguments: HTTPServerCloseReason.allCases)
    func cuts(cut: HTTPServerCloseReason) throws {
        let metrics = TestMetrics()
        Listener.withoutRoutes(metrics: metrics).note(cut)
        let reason =
            switch cut {
            case .writeStalled: "write_stalled"
            case .flooded: "flooded"
            case .handshakeTimeout: "handshake_timeout"
            case .tooManyConnections: "too_many_connections"
            case .evicted: "evicted"
            case .outOfDescriptors: "out_of_descriptors"
            }
        #expect(try metrics.expectCounter("fcmgw_http_rejected_total", [("reason", reason)]).totalValue == 1)
    }
}

extension Listener {
    /// A listener that serves nothing and sheds nothing.
    static func withoutRoutes(metrics: TestMetrics, logger: Logger? = nil) -> Listener {
        let logger = logger ?? Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return Listener(
            routes: RouteTable([]),
            pipeline: RequestPipeline(
                callers: .unknown,
                refusals: AccessRefusals(audit: .sample(store: TestDatabase().auditStore), clock: ManualClock()),
                gate: nil,
                requestDeadline: nil,
                clock: ManualClock(),
                metrics: HTTPMetrics(GatewayMetrics(factory: metrics), listener: "data"),
                accessLog: AccessLog(logger: logger),
                tracer: RequestTracer(),
                logger: logger
            ),
            guide: .data
        )
    }
}
