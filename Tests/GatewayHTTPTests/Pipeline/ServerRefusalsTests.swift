import EventLoopHTTP
import GatewayCore
import GatewayTestKit
import Logging
import MetricsTestKit
import Testing

@testable import GatewayHTTP

struct ServerRefusalsTests {
    /// A refusal of the server's, and how it is answered.
    struct Case: Sendable {
        var refusal: HTTPServerRefusal
        var status: Int
        var code: String
        var reason: String
        var isRetryable = false
    }

    @Test(
        "What the server refuses is a problem like any other, with the status that it is sent with",
        arguments: [
            Case(
                refusal: .badRequest(reason: "The request has no Host."),
                status: 400,
                code: "bad_request",
                reason: "bad_request"
            ),
            Case(refusal: .uriTooLong, status: 414, code: "uri_too_long", reason: "uri_too_long"),
            Case(refusal: .headerTooLarge, status: 431, code: "header_too_large", reason: "header_too_large"),
            Case(refusal: .bodyTooLarge, status: 413, code: "body_too_large", reason: "body_too_large"),
            Case(
                refusal: .headTimeout,
                status: 408,
                code: "request_timeout",
                reason: "head_timeout",
                isRetryable: true
            ),
            Case(
                refusal: .bodyTimeout,
                status: 408,
                code: "request_timeout",
                reason: "body_timeout",
                isRetryable: true
            ),
            Case(refusal: .unsupportedTransferEncoding, status: 501, code: "bad_request", reason: "transfer_encoding"),
            Case(refusal: .httpVersionNotSupported, status: 505, code: "bad_request", reason: "http_version"),
            Case(refusal: .expectationFailed, status: 417, code: "bad_request", reason: "expectation"),
            Case(
                refusal: .tooManyConnections,
                status: 503,
                code: "overloaded",
                reason: "too_many_connections",
                isRetryable: true
            ),
        ]
    )
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
        "A body there is no room for is refused in the words of its route, and counted as shed",
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

    @Test("What ends without an answer is counted by its own reason", arguments: HTTPServerCloseReason.allCases)
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
                callers: .operators(AdminToken(Secret("token")), pause: {}),
                refusals: AccessRefusals(audit: .sample(store: InMemoryAuditStore()), clock: ManualClock()),
                gate: nil,
                requestDeadline: nil,
                clock: ManualClock(),
                metrics: HTTPMetrics(GatewayMetrics(factory: metrics), listener: "data"),
                accessLog: AccessLog(logger: logger),
                tracer: RequestTracer(),
                logger: logger
            )
        )
    }
}
