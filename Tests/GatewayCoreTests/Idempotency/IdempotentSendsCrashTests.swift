import FCMModel
import GatewayTestKit
import NIOCore
import Testing

@testable import GatewayCore

/// A process dies at each step of a send in turn, and the next process receives the same request.
struct IdempotentSendsCrashTests {
    /// A target and the upstream API that sends to it.
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let upstream: UpstreamKind
        let target: Target

        var testDescription: String { self.name }

        static let all = [
            Case(name: "one token, legacy", upstream: .legacy, target: .token("a")),
            Case(name: "one token, v1", upstream: .v1, target: .token("a")),
            Case(name: "a list, legacy", upstream: .legacy, target: .tokens((0..<7).map { "t\($0)" })),
            Case(name: "a list, v1", upstream: .v1, target: .tokens((0..<7).map { "t\($0)" })),
        ]
    }

    /// The number of recipients that one mark covers.
    private static let startsPerMark = 3

    /// One process's answer to a request; `nil` if it died first.
    private static func live(
        _ process: MortalProcess,
        _ fcm: SurvivingFCM,
        _ store: TestIdempotencyStore,
        _ command: SendCommand
    ) async throws -> IdempotentSends.Answer? {
        let fixture = PipelineFixture(upstream: fcm.upstream(of: process))
        let answer = try await Self.send(command, fixture, MortalIdempotencyStore(store: store, process: process))
        return process.isDead ? nil : answer
    }

    private static func send(
        _ command: SendCommand,
        _ fixture: PipelineFixture,
        _ store: any IdempotencyStore
    ) async throws -> IdempotentSends.Answer {
        let sends = IdempotentSends.sample(
            pipeline: fixture.pipeline,
            store: store,
            clock: fixture.clock,
            startsPerMark: Self.startsPerMark
        )
        let request = IdempotentRequest.sample(try #require(IdempotencyKey(Array("key".utf8))))
        return try await sends.whileRunning {
            await sends.send(command, once: request, on: nil, render: Self.render)
        }
    }

    /// Renders an answer as text: the message's id, then one line for each recipient.
    private static let render: IdempotentSends.Rendering = { outcome in
        func line(_ outcome: RecipientOutcome) -> String {
            switch outcome {
            case .accepted: "accepted"
            case .rejected(let rejection): rejection.code.rawValue
            }
        }
        let lines: [String] =
            switch outcome.result.answer {
            case .recipients(let outcomes): outcomes.map(line)
            case .refused(let refusal): ["all " + refusal.code.rawValue]
            case .group: ["group"]
            }
        return Reply(ByteBuffer(string: ([outcome.messageID] + lines).joined(separator: "\n")))
    }

    private static func lines(_ answer: IdempotentSends.Answer, count: Int) -> [String] {
        let text =
            switch answer {
            case .sent(_, let reply, _), .replayed(let reply): String(buffer: reply.body)
            case .refused(let refusal): "none\nall \(refusal.code.rawValue)"
            }
        let lines = text.split(separator: "\n").dropFirst().map(String.init)
        guard let first = lines.first, first.hasPrefix("all ") else { return lines }
        return Array(repeating: String(first.dropFirst(4)), count: count)
    }

    @Test("A crash at any step duplicates no delivery, and accepted recipients were sent to", arguments: Case.all)
    func death(sample: Case) async throws {
        let principal = try Principal.sample(upstream: sample.upstream)
        let command = SendCommand.sample(from: principal, to: sample.target)
        let tokens = sample.target.listed ?? ["a"]

        let immortal = MortalProcess()
        let untouched = SurvivingFCM()
        _ = try await Self.live(immortal, untouched, TestIdempotencyStore(), command)
        #expect(untouched.total == tokens.count)
        let steps = immortal.steps
        #expect(steps.count >= 7, "\(steps)")

        for count in 0..<steps.count {
            let (fcm, store) = (SurvivingFCM(), TestIdempotencyStore())
            let died = try await Self.live(MortalProcess(dyingAfter: count), fcm, store, command)
            #expect(died == nil)
            let place = "died before \(steps[count])"
            let reached = Set(tokens.filter { fcm.count($0) > 0 })

            let second = try #require(try await Self.live(MortalProcess(), fcm, store, command))
            let results = Self.lines(second, count: tokens.count)
            #expect(results.count == tokens.count, "\(place): \(results)")
            for (token, result) in zip(tokens, results) {
                #expect(fcm.count(token) <= 1, "\(place): \(token)")
                #expect(["accepted", "outcome_unknown"].contains(result), "\(place): \(token) \(result)")
                if result == "accepted" { #expect(fcm.count(token) == 1, "\(place): \(token)") }
                // A recipient reached before the crash is never sent to again.
                if reached.contains(token) { #expect(fcm.count(token) == 1, "\(place): \(token)") }
            }
            // In a fan-out, at most the recipients of one mark are unknown.
            let unknown = results.count { $0 == "outcome_unknown" }
            let isFanOut = sample.upstream == .v1 && sample.target.isList
            #expect(unknown <= (isFanOut ? Self.startsPerMark : tokens.count), "\(place): \(results)")
            if count <= 1 { #expect(unknown == 0, "\(place): nothing was reserved") }

            let total = fcm.total
            let third = try #require(try await Self.live(MortalProcess(), fcm, store, command))
            guard case .replayed = third else {
                Issue.record("\(place): \(third)")
                continue
            }
            #expect(Self.lines(third, count: tokens.count) == results, "\(place)")
            #expect(fcm.total == total, "\(place)")
        }
    }

    @Test("Each repeated crash leaves at most one mark's recipients unknown, and none is sent to twice")
    func repeatedDeath() async throws {
        let tokens = (0..<12).map { "t\($0)" }
        let command = SendCommand.sample(from: try .sample(upstream: .v1), to: .tokens(tokens))
        for first in 3..<12 {
            let (fcm, store) = (SurvivingFCM(), TestIdempotencyStore())
            _ = try await Self.live(MortalProcess(dyingAfter: first), fcm, store, command)
            _ = try await Self.live(MortalProcess(dyingAfter: 6), fcm, store, command)
            let answer = try #require(try await Self.live(MortalProcess(), fcm, store, command))
            let results = Self.lines(answer, count: tokens.count)
            for (token, result) in zip(tokens, results) {
                #expect(fcm.count(token) <= 1)
                #expect(result == "outcome_unknown" || fcm.count(token) == 1)
            }
            #expect(results.count { $0 == "outcome_unknown" } <= 2 * Self.startsPerMark)
        }
    }

    @Test("The message keeps its id, and the recipients that another process started are recorded")
    func messageID() async throws {
        let command = SendCommand.sample(from: try .sample(upstream: .v1), to: .tokens((0..<7).map { "t\($0)" }))
        let (fcm, store) = (SurvivingFCM(), TestIdempotencyStore())
        // Reads, reserves three, delivers one.
        _ = try await Self.live(MortalProcess(dyingAfter: 5), fcm, store, command)
        let messageID = try #require(try await store.records().first?.record.messageID)
        let fixture = PipelineFixture(upstream: fcm.upstream(of: MortalProcess()))
        guard case .sent(let outcome, _, _) = try await Self.send(command, fixture, store) else {
            throw SampleError(what: "sent")
        }
        #expect(outcome.messageID == messageID)
        let records = try await fixture.records()
        #expect(records.map(\.messageID) == [messageID, messageID])
        #expect(records.map(\.recipients) == [4, 3])
        #expect(records.map(\.accepted) == [4, 0])
        #expect(records.map(\.code) == [nil, "outcome_unknown"])
        #expect(records.last?.object == "settled by a repeat")
    }

    @Test(
        "If the remaining recipients are refused, the repeat is refused as a whole and can be retried",
        arguments: [
            (SendResult(refused: .upstreamUnavailable, upstreamCode: "503"), "upstream_unavailable"),
            // Individual outcomes of the four remaining recipients, not of all seven.
            (
                SendResult(Array(repeating: .rejected(.tenantRateExceeded), count: 4), upstreamCode: "503"),
                "tenant_rate_exceeded"
            ),
        ]
    )
    func refusedRest(refusal: SendResult, code: String) async throws {
        let command = SendCommand.sample(from: try .sample(upstream: .v1), to: .tokens((0..<7).map { "t\($0)" }))
        let (fcm, store) = (SurvivingFCM(), TestIdempotencyStore())
        _ = try await Self.live(MortalProcess(dyingAfter: 5), fcm, store, command)
        let busy = PipelineFixture { call in
            _ = await call.reservation?.pass(0)
            return refusal
        }
        let refused = try await Self.send(command, busy, store)
        #expect(Self.lines(refused, count: 7) == Array(repeating: code, count: 7))
        // Any replica may continue at once.
        guard case .update(_, .open, endsLease: true) = store.batches.last?.last else {
            throw SampleError(what: "an ended lease")
        }
        let answer = try #require(try await Self.live(MortalProcess(), fcm, store, command))
        #expect(Self.lines(answer, count: 7).count { $0 == "outcome_unknown" } == 3)
        #expect(fcm.total == 5)
    }
}
