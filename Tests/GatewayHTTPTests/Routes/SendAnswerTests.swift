import FCMModel
import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct SendAnswerTests {
    /// What the contract says of a code, written down apart from the code under test.
    struct Expectation: Sendable, CustomTestStringConvertible {
        var code: OutcomeCode
        var status: Int
        var isRetryable: Bool
        var action: String?
        /// What `Retry-After` says where the upstream names no delay.
        var retryAfter: Int?
        var limitedBy: String?

        var testDescription: String { self.code.rawValue }
    }

    static let single: [Expectation] = [
        Expectation(code: .invalidField, status: 422, isRetryable: false, action: "fix_request"),
        Expectation(code: .invalidTarget, status: 422, isRetryable: false, action: "fix_request"),
        Expectation(code: .invalidDataKey, status: 422, isRetryable: false, action: "fix_request"),
        Expectation(code: .messageTooBig, status: 422, isRetryable: false, action: "shrink_payload"),
        Expectation(code: .invalidToken, status: 422, isRetryable: false, action: "fix_request"),
        Expectation(code: .unregistered, status: 410, isRetryable: false, action: "delete_token"),
        Expectation(code: .senderMismatch, status: 422, isRetryable: false, action: "use_matching_sender"),
        Expectation(code: .packageMismatch, status: 422, isRetryable: false, action: "fix_request"),
        Expectation(
            code: .deviceRateExceeded,
            status: 429,
            isRetryable: true,
            action: "wait",
            retryAfter: 5,
            limitedBy: "fcm"
        ),
        Expectation(
            code: .topicRateExceeded,
            status: 429,
            isRetryable: true,
            action: "wait",
            retryAfter: 5,
            limitedBy: "fcm"
        ),
        Expectation(code: .upstreamCredentials, status: 502, isRetryable: false, action: "call_operator"),
        Expectation(code: .upstreamProtocol, status: 502, isRetryable: false, action: "call_operator"),
        Expectation(code: .upstreamUnavailable, status: 503, isRetryable: true, action: "wait", retryAfter: 5),
        Expectation(code: .upstreamInternal, status: 502, isRetryable: true, action: "wait"),
    ]

    static let whole: [Expectation] =
        single + [
            Expectation(code: .malformedJSON, status: 400, isRetryable: false, action: "fix_request"),
            Expectation(code: .outcomeUnknown, status: 504, isRetryable: false),
        ]

    @Test("A lone recipient's refusal is the answer's status", arguments: single)
    func lone(expectation: Expectation) async throws {
        try await TestGateway.run { gateway, key in
            gateway.answer(
                UpstreamResult(answer: .recipients([.rejected(expectation.code)]), upstreamCode: "200")
            )
            try Self.check(await gateway.send(#"{"token":"device"}"#, key: key), expectation)
        }
    }

    @Test("A call that failed as a whole is one problem, even for a list", arguments: whole)
    func failed(expectation: Expectation) async throws {
        try await TestGateway.run { gateway, key in
            let result = UpstreamResult(answer: .failed(expectation.code), upstreamCode: "x")
            gateway.answer(result, result)
            try Self.check(await gateway.send(#"{"token":"device"}"#, key: key), expectation)
            try Self.check(await gateway.send(#"{"tokens":["a","b"]}"#, key: key), expectation)
        }
    }

    @Test("The upstream's own delay is passed on where repeating makes sense", arguments: whole)
    func delay(expectation: Expectation) async throws {
        var expectation = expectation
        expectation.retryAfter = expectation.isRetryable ? 37 : nil
        try await TestGateway.run { [expectation] gateway, key in
            gateway.answer(
                UpstreamResult(answer: .failed(expectation.code), retryAfter: 37, upstreamCode: "x")
            )
            try Self.check(await gateway.send(#"{"token":"device"}"#, key: key), expectation)
        }
    }

    @Test("Recipients that share a failed call with refused ones each carry it")
    func partialFailure() async throws {
        let once = try RatePolicy.sample(1, per: 60, burst: 1)
        try await TestGateway.run(limits: LimitPolicies(device: [once])) { gateway, key in
            _ = await gateway.send(#"{"token":"b"}"#, key: key)
            gateway.answer(
                UpstreamResult(answer: .failed(.upstreamUnavailable), retryAfter: 9, upstreamCode: "503")
            )
            let answer = await gateway.send(#"{"tokens":["a","b"]}"#, key: key)
            #expect(answer.status == 200)
            let results = try answer.json["results"]?.elements ?? []
            #expect(results.map { $0["code"]?.text } == ["upstream_unavailable", "device_rate_exceeded"])
            #expect(results.map { $0["retry_after"]?.int } == [9, 60])
            #expect(results.map { $0["limited_by"]?.text } == [nil, "gateway"])
        }
    }

    private static func check(
        _ answer: Answer,
        _ expectation: Expectation,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(answer.status == expectation.status, sourceLocation: sourceLocation)
        let problem = try answer.problem(sourceLocation: sourceLocation)
        #expect(problem["code"]?.text == expectation.code.rawValue, sourceLocation: sourceLocation)
        #expect(problem["retryable"] == .bool(expectation.isRetryable), sourceLocation: sourceLocation)
        #expect(problem["action"]?.text == expectation.action, sourceLocation: sourceLocation)
        #expect(problem["retry_after"]?.int == expectation.retryAfter, sourceLocation: sourceLocation)
        #expect(problem["limited_by"]?.text == expectation.limitedBy, sourceLocation: sourceLocation)
        #expect(problem["id"]?.text?.isUUIDv7 == true, sourceLocation: sourceLocation)
        #expect(answer.header("RateLimit") != nil, sourceLocation: sourceLocation)
        #expect(answer.header("RateLimit-Policy") != nil, sourceLocation: sourceLocation)
        var known: Set = ["type", "title", "status", "code", "detail", "retryable", "id"]
        if expectation.action != nil { known.insert("action") }
        if expectation.retryAfter != nil { known.insert("retry_after") }
        if expectation.limitedBy != nil { known.insert("limited_by") }
        #expect(problem.keys == known, sourceLocation: sourceLocation)
    }
}
