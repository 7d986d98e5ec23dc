import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

@Suite("The lease of a send with an idempotency key", .timeLimit(.minutes(10)))
struct SendReservationLeaseTests {
    private let store = TestIdempotencyStore()
    private let time = Observed(Uptime.now)
    private let target = Target.tokens((0..<30).map { "token \($0)" })

    private func reservation(
        _ writer: SendReservation.Writer,
        of stored: IdempotencyRecord.Stored? = nil
    ) throws -> SendReservation {
        let (time, profile) = (self.time, try TenantProfile.sample())
        let key = try #require(IdempotencyKey(Array("key".utf8)))
        let identity = IdempotencyRecord.Identity(.sample(key), of: profile)
        let draft = IdempotencyRecord(
            fingerprint: [1],
            messageID: "message",
            createdAt: .sample,
            expiresAt: .sample.advanced(by: .seconds(86_400)),
            state: .open(progress: [])
        )
        return SendReservation(
            identity,
            to: self.target,
            draft: stored?.record ?? draft,
            recordID: stored?.id,
            earlier: SendReservation.Progress(count: 30),
            sealer: IdempotencySealer(of: identity, messageID: "message", profile),
            writer: writer,
            counters: [:],
            startsPerMark: 10,
            leases: LeaseTerms(
                duration: .seconds(30),
                attemptTimeout: { .seconds(10) },
                uptime: { time.current }
            )
        )
    }

    private func withWriter(_ body: (SendReservation.Writer) async throws -> Void) async throws {
        let store = self.store
        let writer = SendReservation.Writer(
            changesPerTransaction: 500,
            transaction: { (changes: [IdempotencyChange]) async throws(GatewayError) -> [IdempotencyChange.Outcome] in
                try await store.apply(changes)
            }
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = await writer.run() }
            defer { writer.close() }
            try await body(writer)
        }
    }

    @Test("An owner paused past its lease makes no call, and writes no mark after another replica's takeover")
    func paused() async throws {
        try await self.withWriter { writer in
            let reservation = try self.reservation(writer)
            reservation.begin(self.target)
            #expect(await reservation.pass(0))
            #expect(reservation.mayCall(within: .seconds(10)))
            self.time.change { $0 += .seconds(31) }
            self.store.holdElsewhere()
            // Recipient 9 was marked before, so the new owner reports its outcome as unknown.
            #expect(await reservation.pass(9))
            #expect(!reservation.mayCall(within: .zero))
            #expect(await reservation.pass(10) == false)
            #expect(reservation.refusal?.code == .idempotencyInProgress)
            #expect(!reservation.mayCall(within: .zero))
            await reservation.renewLease()
            #expect(!reservation.mayCall(within: .zero))
        }
    }

    @Test(
        "If the store fails, the rest is refused as overloaded, or as in progress once the lease has ended",
        arguments: [(Duration.seconds(29), OutcomeCode.overloaded), (.seconds(31), .idempotencyInProgress)]
    )
    func storeFails(after pause: Duration, code: OutcomeCode) async throws {
        try await self.withWriter { writer in
            let reservation = try self.reservation(writer)
            reservation.begin(self.target)
            #expect(await reservation.pass(0))
            self.time.change { $0 += pause }
            self.store.refuse()
            #expect(await reservation.pass(10) == false)
            #expect(reservation.refusal?.code == code)
        }
    }

    @Test(
        "An owner paused past its lease reports the unmarked recipients of its list as in progress",
        arguments: [OutcomeCode.overloaded, .upstreamUnavailable, nil]
    )
    func pausedList(rest code: OutcomeCode?) async throws {
        try await self.withWriter { writer in
            let (time, store, reservation) = (self.time, self.store, try self.reservation(writer))
            let upstream = ScriptedUpstream { call in
                // Ten are marked and five sent; then the process pauses.
                var outcomes: [RecipientOutcome] = []
                for index in 0..<5 {
                    #expect(await call.reservation?.pass(index) == true)
                    outcomes.append(.accepted(Acceptance(messageID: "\(index)")))
                }
                time.change { $0 += .seconds(31) }
                store.holdElsewhere()
                guard let code else { return SendResult(refused: .upstreamUnavailable, upstreamCode: "") }
                outcomes += Array(repeating: .rejected(.upstreamUnavailable), count: 5)
                outcomes += Array(repeating: .rejected(code), count: 20)
                return SendResult(outcomes, upstreamCode: "200")
            }
            let principal = try Principal.sample(upstream: .v1)
            let command = SendCommand.sample(from: principal, to: self.target)
            let call = UpstreamCall(command, target: self.target, reservation: reservation)
            let result = await reservation.send(call, by: upstream)
            guard code != nil else {
                // The new owner reports the marked recipients as unknown and does not send to them.
                #expect(result.refusal?.code == .upstreamUnavailable)
                return
            }
            guard case .recipients(let outcomes) = result.answer else {
                Issue.record("\(result)")
                return
            }
            #expect(outcomes.prefix(5).allSatisfy { $0.code == nil })
            #expect(outcomes[5..<10].allSatisfy { $0.code == .upstreamUnavailable })
            #expect(outcomes.dropFirst(10).allSatisfy { $0.code == .idempotencyInProgress })
            #expect(outcomes.count == 30)
        }
    }

    @Test("A mark renews the lease, and a refused renewal ends it at once")
    func renewed() async throws {
        try await self.withWriter { writer in
            let reservation = try self.reservation(writer)
            reservation.begin(self.target)
            #expect(await reservation.pass(0))
            self.time.change { $0 += .seconds(25) }
            #expect(!reservation.mayCall(within: .seconds(10)))
            #expect(await reservation.pass(10))
            #expect(reservation.mayCall(within: .seconds(10)))
            self.time.change { $0 += .seconds(10) }
            self.store.holdElsewhere()
            #expect(reservation.mayCall(within: .seconds(10)))
            await reservation.renewLease()
            #expect(!reservation.mayCall(within: .zero))
            #expect(await reservation.pass(20) == false)
        }
    }

    @Test("A record that was marked after it was read is not taken over")
    func markedSince() async throws {
        try await self.withWriter { writer in
            let owner = try self.reservation(writer)
            owner.begin(self.target)
            #expect(await owner.pass(0))
            let read = try #require(try await self.store.records().first)
            #expect(await owner.pass(10))
            #expect(try await self.reservation(writer, of: read).takeOver() == false)
            let current = try #require(try await self.store.records().first)
            let taker = try self.reservation(writer, of: current)
            #expect(!taker.mayCall(within: .zero))
            #expect(try await taker.takeOver())
            #expect(taker.mayCall(within: .seconds(10)))
        }
    }
}
