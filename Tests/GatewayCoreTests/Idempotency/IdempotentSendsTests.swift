import FCMModel
import GatewayTestKit
import InMemoryLogging
import Logging
import MetricsTestKit
import NIOCore
import Testing

@testable import GatewayCore

struct IdempotentSendsTests {
    private let store = TestIdempotencyStore()

    private static func request(_ key: Int = 1) throws -> IdempotentRequest {
        let key = try #require(IdempotencyKey(Array("key \(key)".utf8)))
        return .sample(key)
    }

    private static func command(
        _ target: Target = .token("a"),
        by upstream: UpstreamKind = .legacy
    ) throws -> SendCommand {
        .sample(from: try .sample(upstream: upstream), to: target)
    }

    private func sends(_ fixture: PipelineFixture, startsPerMark: Int = 10) -> IdempotentSends {
        .sample(pipeline: fixture.pipeline, store: self.store, clock: fixture.clock, startsPerMark: startsPerMark)
    }

    /// Sends under a key; the reply's body is the message's id.
    private static func send(
        _ command: SendCommand,
        _ sends: IdempotentSends,
        key: Int = 1
    ) async throws -> IdempotentSends.Answer {
        await sends.send(command, once: try Self.request(key), on: nil) { Reply(ByteBuffer(string: $0.messageID)) }
    }

    private static func results(_ answer: IdempotentSends.Answer) throws -> [RecipientOutcome] {
        guard case .sent(let outcome, _, _) = answer, case .recipients(let results) = outcome.result.answer else {
            throw SampleError(what: "a result for each of the list: \(answer)")
        }
        return results
    }

    @Test("Reservations made during a transaction share the next one")
    func groupCommit() async throws {
        let store = self.store
        store.database.holdWrites()
        let fixture = PipelineFixture(queueCapacity: 1_000)
        let sends = IdempotentSends.sample(pipeline: fixture.pipeline, store: store, clock: fixture.clock)
        try await sends.whileRunning {
            await withTaskGroup { group in
                for number in 1...100 {
                    group.addTask {
                        guard let command = try? Self.command(.token("device \(number)")) else { return }
                        _ = try? await Self.send(command, sends, key: number)
                    }
                }
                try? await store.database.wait { $0.waiting > 0 }
                store.database.holdWrites(false)
            }
        }
        #expect(store.batches.joined().count == 200)
        #expect(store.batches.count < 100)
        #expect(fixture.upstream.calls.count == 100)
    }

    @Test("The first failure of a store outage and its end are logged, and nothing between")
    func loggedOutage() async throws {
        let (fixture, logs) = (PipelineFixture(), InMemoryLogHandler())
        let sends = IdempotentSends.sample(
            pipeline: fixture.pipeline,
            store: self.store,
            clock: fixture.clock,
            logger: Logger(label: "test") { _ in logs }
        )
        self.store.refuse()
        try await sends.whileRunning {
            for key in 1...3 { _ = try await Self.send(try Self.command(), sends, key: key) }
            self.store.refuse(false)
            _ = try await Self.send(try Self.command(), sends, key: 4)
        }
        #expect(logs.entries.map(\.level) == [.error, .notice])
    }

    // MARK: Other replicas

    /// Sends with leases of 30 seconds on a clock that the test advances.
    private func leased(
        _ fixture: PipelineFixture,
        _ time: Observed<Uptime>,
        _ metrics: GatewayMetrics = GatewayMetrics()
    ) -> IdempotentSends {
        let terms = LeaseTerms(
            duration: .seconds(30),
            attemptTimeout: { .seconds(10) },
            uptime: { time.current }
        )
        return .sample(
            pipeline: fixture.pipeline,
            store: self.store,
            clock: fixture.clock,
            leases: terms,
            metrics: metrics
        )
    }

    @Test("A repeat is refused as in progress while another replica holds the send")
    func heldElsewhere() async throws {
        let fixture = PipelineFixture()
        let store = self.store
        // The record stays open because its answer can't be stored.
        let failing = PipelineFixture { call in
            store.refuse()
            return ScriptedUpstream.accepting(call)
        }
        let first = self.sends(failing)
        try await first.whileRunning { _ = try await Self.send(try Self.command(), first) }
        store.refuse(false)
        self.store.holdElsewhere()
        let sends = self.leased(fixture, Observed(Uptime.now))
        try await sends.whileRunning {
            guard case .refused(let refusal) = try await Self.send(try Self.command(), sends) else {
                throw SampleError(what: "refused")
            }
            #expect(refusal.code == .idempotencyInProgress)
        }
        #expect(fixture.upstream.calls.isEmpty)
    }

    @Test("A call may start only if the lease outlasts it, and a renewal allows calls again")
    func leaseBeforeCall() async throws {
        let time = Observed(Uptime.now)
        let passed = Observed<[Bool]>([])
        let sender = Observed<IdempotentSends?>(nil)
        let fixture = PipelineFixture { call in
            func ask() { passed.change { $0.append(call.reservation?.mayCall(within: .seconds(10)) == true) } }
            ask()
            time.change { $0 += .seconds(20) }
            ask()
            await sender.current?.renewLeases()
            ask()
            return ScriptedUpstream.accepting(call)
        }
        let sends = self.leased(fixture, time)
        sender.change { $0 = sends }
        try await sends.whileRunning { _ = try await Self.send(try Self.command(), sends) }
        sender.change { $0 = nil }
        #expect(passed.current == [true, false, true])
    }

    @Test("A lost lease and a takeover are counted once each")
    func leaseCounts() async throws {
        let (time, factory, store) = (Observed(Uptime.now), TestMetrics(), self.store)
        let sender = Observed<IdempotentSends?>(nil)
        let fixture = PipelineFixture { call in
            store.holdElsewhere()
            time.change { $0 += .seconds(20) }
            await sender.current?.renewLeases()
            return ScriptedUpstream.accepting(call)
        }
        func counted() throws -> [Int64] {
            try ["takeovers", "losses"]
                .map { name in
                    try factory.expectCounter("fcmgw_lease_\(name)_total", [("kind", "request")]).totalValue
                }
        }
        let first = self.leased(fixture, time, GatewayMetrics(factory: factory))
        sender.change { $0 = first }
        // The loss shows at the renewal and again when the answer is stored.
        try await first.whileRunning { _ = try await Self.send(try Self.command(), first) }
        sender.change { $0 = nil }
        #expect(try counted() == [0, 1])
        store.holdElsewhere(false)
        let second = self.leased(PipelineFixture(), time, GatewayMetrics(factory: factory))
        try await second.whileRunning { _ = try await Self.send(try Self.command(), second) }
        #expect(try counted() == [1, 1])
    }

    @Test("At shutdown running sends finish, and later ones are refused")
    func shutdown() async throws {
        let isHeld = Observed(true)
        let fixture = PipelineFixture { call in
            try? await isHeld.wait { !$0 }
            return ScriptedUpstream.accepting(call)
        }
        let sends = self.sends(fixture)
        let command = try Self.command()
        let sending = Observed<Task<IdempotentSends.Answer, any Error>?>(nil)
        try await sends.whileRunning {
            let task = Task { try await Self.send(command, sends) }
            sending.change { $0 = task }
            try await fixture.upstream.wait(forCalls: 1)
            Task { isHeld.change { $0 = false } }
        }
        guard case .sent = try await sending.current?.value else { throw SampleError(what: "sent") }
        #expect(try await self.store.records().count == 1)
        guard case .refused(let refusal) = try await Self.send(command, sends, key: 2) else {
            throw SampleError(what: "refused after the end")
        }
        #expect(refusal.code == .overloaded)
        #expect(fixture.upstream.calls.count == 1)
    }

    @Test("An answer that can't be stored is still returned, and a repeat sends nothing")
    func unkept() async throws {
        let fixture = PipelineFixture { call in
            self.store.refuse()
            return ScriptedUpstream.accepting(call)
        }
        let sends = self.sends(fixture)
        try await sends.whileRunning {
            let command = try Self.command()
            guard case .sent(let outcome, _, _) = try await Self.send(command, sends),
                outcome.result.code == nil
            else { throw SampleError(what: "accepted") }
            self.store.refuse(false)
            guard case .sent(let again, _, _) = try await Self.send(command, sends),
                case .refused(let refusal) = again.result.answer
            else { throw SampleError(what: "answered") }
            #expect(refusal == Refusal(.outcomeUnknown, refusal.detail))
            #expect(again.messageID == outcome.messageID)
            #expect(fixture.upstream.calls.count == 1)
        }
    }

    @Test("Every recipient of a list passes, a place beyond the list does not, and one mark covers several")
    func gate() async throws {
        let seen = Observed<[Int]>([])
        let fixture = PipelineFixture { call in
            guard let reservation = call.reservation else {
                return SendResult(refused: .internalError, upstreamCode: "no")
            }
            await withTaskGroup { group in
                for index in 0..<call.target.recipientCount {
                    group.addTask {
                        #expect(await reservation.pass(index))
                        seen.change { $0.append(index) }
                    }
                }
            }
            #expect(!(await reservation.pass(call.target.recipientCount)))
            return ScriptedUpstream.accepting(call)
        }
        let sends = self.sends(fixture, startsPerMark: 30)
        try await sends.whileRunning {
            let command = try Self.command(.tokens((0..<100).map { "t\($0)" }), by: .v1)
            _ = try await Self.send(command, sends)
        }
        #expect(seen.current.sorted() == Array(0..<100))
        // At most four marks and the answer.
        #expect(self.store.batches.count <= 5)
    }

    @Test("A list stops at the first mark that can't be stored")
    func refusedMark() async throws {
        let fixture = PipelineFixture { call in
            var outcomes: [RecipientOutcome] = []
            for index in 0..<call.target.recipientCount {
                if index == 25 { self.store.refuse() }
                let passes = await call.reservation?.pass(index) == true
                outcomes.append(passes ? .accepted(Acceptance(messageID: "\(index)")) : .rejected(.overloaded))
            }
            self.store.refuse(false)
            return SendResult(outcomes, upstreamCode: "200")
        }
        let sends = self.sends(fixture)
        try await sends.whileRunning {
            let command = try Self.command(.tokens((0..<50).map { "t\($0)" }), by: .v1)
            let results = try Self.results(try await Self.send(command, sends))
            #expect(results.prefix(30).allSatisfy { if case .accepted = $0 { true } else { false } })
            #expect(results.dropFirst(30).allSatisfy { $0.code == .overloaded })
        }
    }

    @Test("Duplicate tokens and those over a limit keep their places in the results")
    func places() async throws {
        let burst = try #require(RatePolicy(rate: 1, periodSeconds: 3_600, burst: 1))
        let limits = LimitPolicies(device: [burst])
        let fixture = PipelineFixture { call in
            _ = await call.reservation?.pass(call.target.recipientCount - 1)
            return ScriptedUpstream.accepting(call)
        }
        let sends = self.sends(fixture)
        let principal = try Principal.sample(limits: limits, upstream: .v1)
        try await sends.whileRunning {
            let command = SendCommand.sample(from: principal, to: .tokens(["a", "b", "a", "c"]))
            let results = try Self.results(try await Self.send(command, sends))
            let isAccepted = results.map { if case .accepted = $0 { true } else { false } }
            #expect(isAccepted == [true, true, false, true], "\(results)")
        }
    }

    @Test("A purge deletes all expired records, and none while the store fails")
    func purge() async throws {
        let fixture = PipelineFixture()
        let sends = self.sends(fixture)
        try await sends.whileRunning {
            for number in 1...5 { _ = try await Self.send(try Self.command(), sends, key: number) }
        }
        #expect(await sends.purge() == 0)
        fixture.clock.advance(by: .seconds(86_400))
        #expect(await sends.purge() == 5)
        #expect(try await self.store.records().isEmpty)
        self.store.refuse()
        #expect(await sends.purge() == 0)
    }

    @Test("A clock set days ahead frees no key, in this process or the next, but elapsed time does")
    func clockAhead() async throws {
        let fixture = PipelineFixture()
        let command = try Self.command()
        let uptime = Observed(Uptime.now)
        /// Sends in a new process, before and after the clock jumps and time passes.
        func life(jump: Duration, passing: Duration) async throws -> [Bool] {
            let sends = IdempotentSends.sample(
                pipeline: fixture.pipeline,
                store: self.store,
                clock: fixture.clock,
                uptime: { uptime.current }
            )
            return try await sends.whileRunning {
                var replays: [Bool] = []
                for (jump, passing) in [(Duration.zero, Duration.zero), (jump, passing)] {
                    fixture.clock.advance(by: jump)
                    uptime.change { $0 += passing }
                    _ = await sends.purge()
                    let answer = try await Self.send(command, sends)
                    let isReplay = if case .replayed = answer { true } else { false }
                    replays.append(isReplay)
                }
                return replays
            }
        }
        #expect(try await life(jump: .seconds(172_800), passing: .seconds(3_600)) == [false, true])
        // The clock is right again, and then wrong at each start.
        fixture.clock.advance(by: .seconds(-172_800))
        #expect(try await life(jump: .zero, passing: .seconds(60)) == [true, true])
        for _ in 1...3 {
            fixture.clock.advance(by: .seconds(604_800))
            #expect(try await life(jump: .zero, passing: .zero) == [true, true])
        }
        #expect(fixture.upstream.calls.count == 1)
        #expect(try await life(jump: .zero, passing: .seconds(86_400)) == [true, false])
        #expect(fixture.upstream.calls.count == 2)
    }

    @Test("Time between processes follows the wall clock, for at most an hour and never backwards")
    func timeBetweenProcesses() {
        let (mark, now) = (Timestamp.sample, Uptime.now)
        for (gap, counted) in [(0, 0), (59, 59), (3_600, 3_600), (3_601, 3_600), (86_400, 3_600), (-60, 0)] {
            let wall = mark.advanced(by: .seconds(7 + gap))
            let time = IdempotencyTime(
                after: IdempotencyMark(time: mark, wall: mark.advanced(by: .seconds(7))),
                wall: wall,
                uptime: now
            )
            #expect(time.now(at: now) == mark.advanced(by: .seconds(counted)))
            #expect(time.now(at: now + .seconds(5)) == mark.advanced(by: .seconds(counted + 5)))
            #expect(IdempotencyTime(after: nil, wall: wall, uptime: now).now(at: now) == wall)
        }
    }

    @Test("Fingerprints differ by method, path, format, recipients, message and tenant")
    func fingerprints() throws {
        let key = try #require(IdempotencyKey([0x6B]))
        func fingerprint(
            _ method: String = "POST",
            _ path: String = "/a",
            _ format: LegacyFormat = .json,
            to target: Target = .token("t"),
            dryRun: Bool = false,
            of tenant: String = "acme"
        ) throws -> [UInt8] {
            var message = Message()
            message.dryRun = dryRun
            let request = IdempotentRequest(
                key: key,
                route: .messages,
                format: format,
                method: method,
                path: Array(path.utf8),
                target: target,
                message: message
            )
            let profile = try TenantProfile.sample(tenant)
            return IdempotencySealer.fingerprint(of: request, IdempotencyRecord.Identity(request, of: profile), profile)
        }
        let base = try fingerprint()
        #expect(try fingerprint() == base)
        #expect(try fingerprint("POST", "/a?query") == base)
        let others = [
            try fingerprint("PUT"), try fingerprint("POST", "/ab"), try fingerprint("POST/", "a"),
            try fingerprint("POST", "/a", .form), try fingerprint(to: .token("u")),
            try fingerprint(to: .deviceGroup("t")), try fingerprint(to: .notificationKey("t")),
            try fingerprint(dryRun: true), try fingerprint(of: "other"),
        ]
        #expect(Set(others + [base]).count == others.count + 1)
    }

    @Test("A stored reply is read back unchanged, and damaged bytes are refused")
    func storedReply() throws {
        let json = "application/json"
        let codes: [OutcomeCode?] = [nil, .deviceRateExceeded]
        for (code, delay) in zip(codes, [nil, 7]) {
            let body = ByteBuffer(string: "{}")
            let reply = Reply(status: 429, contentType: json, body, retryAfter: delay, code: code)
            let bytes = reply.storedBytes
            #expect(Reply(storedBytes: bytes) == reply)
            #expect(Reply(storedBytes: [1] + bytes.dropFirst()) == nil)
            for count in 0..<(bytes.count - 2) {
                #expect(Reply(storedBytes: Array(bytes.prefix(count))) == nil, "\(count)")
            }
        }
    }

    @Test("Sealed data opens only for its own record, part and tenant")
    func sealing() throws {
        let request = try Self.request()
        let profile = try TenantProfile.sample()
        let identity = IdempotencyRecord.Identity(request, of: profile)
        let sealer = IdempotencySealer(of: identity, messageID: "1", profile)
        let sealed = try sealer.seal([1, 2, 3], as: .answer)
        #expect(sealer.open(sealed, as: .answer) == [1, 2, 3])
        #expect(sealer.open(sealed, as: .progress) == nil)
        #expect(IdempotencySealer(of: identity, messageID: "2", profile).open(sealed, as: .answer) == nil)
        let other = IdempotencyRecord.Identity(try Self.request(2), of: profile)
        #expect(IdempotencySealer(of: other, messageID: "1", profile).open(sealed, as: .answer) == nil)
        let stranger = try TenantProfile.sample("other")
        #expect(IdempotencySealer(of: identity, messageID: "1", stranger).open(sealed, as: .answer) == nil)
        #expect(sealer.open([], as: .answer) == nil)
    }
}
