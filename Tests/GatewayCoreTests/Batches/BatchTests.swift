import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

/// The states of a batch, without a store.
struct BatchTests {
    private static let now = Timestamp(microseconds: 1_800_000_000_000_000)

    private static func batch(_ state: Batch.State, total: Int = 10) throws -> Batch {
        var batch = Batch(
            id: "b",
            tenant: try .sample("acme"),
            state: state,
            keyID: "creator",
            createdAt: Self.now,
            dueAt: Self.now,
            expiresAt: Self.now
        )
        batch.counts.total = total
        if state.isOver { batch.finishedAt = Self.now }
        return batch
    }

    @Test("Each change is made from the states that allow it, and from no other", arguments: Batch.State.allCases)
    func changes(state: Batch.State) throws {
        let changes: [(BatchChange, from: Set<Batch.State>, to: Batch.State)] = [
            (.start(parts: 1, recipients: 10, keyID: "other"), [.open], .queued),
            (.start(parts: 1, recipients: 11, keyID: "other"), [], .queued),
            (.pause(.caller), [.queued, .running], .paused),
            (.resume(keyID: "other"), [.paused], .queued),
            (.cancel(.byOperator), [.open, .queued, .running, .paused], .cancelled),
            (.expire, [.open, .queued, .running, .paused], state == .open ? .cancelled : .expired),
        ]
        for (change, from, to) in changes {
            let before = try Self.batch(state)
            var batch = before
            let isMade = batch.apply(change, at: Self.now)
            #expect(isMade == from.contains(state), "\(change)")
            #expect(batch.state == (isMade ? to : state))
            #expect(isMade || batch == before)
            #expect((batch.finishedAt != nil) == batch.state.isOver)
        }
    }

    @Test("A resumption continues where the pause began, by another key or by the same")
    func resumed() throws {
        for (keyID, expected) in [("other", "other"), (nil, "creator")] {
            var batch = try Self.batch(.running)
            batch.startedAt = Self.now
            _ = batch.apply(.pause(.upstreamCredentials, credential: "print"), at: Self.now)
            #expect(batch.reason == .upstreamCredentials && batch.credential == "print")
            _ = batch.apply(.resume(keyID: keyID), at: Self.now)
            #expect(batch.state == .running && batch.reason == nil && batch.credential == nil)
            #expect(batch.keyID == expected && batch.creatorID == "creator")
        }
    }

    private static func round(left: Int, accepted: Int = 0, rejected: Int = 0, unknown: Int = 0) -> Batch.Recording {
        var added = Batch.Counts()
        (added.accepted, added.rejected, added.unknown) = (accepted, rejected, unknown)
        return Batch.Recording(pending: [], pendingCount: left, results: [], added: added, dueAt: Self.now)
    }

    @Test(
        "A batch whose first slice was sent is running from then on, unless it is paused or over",
        arguments: Batch.State.allCases
    )
    func begun(state: Batch.State) throws {
        var batch = try Self.batch(state)
        batch.begin(at: Self.now)
        batch.begin(at: Self.now.advanced(by: .seconds(1)))
        #expect(batch.state == (state == .queued ? .running : state) && batch.startedAt == Self.now)
    }

    @Test("Outcomes add up to the total, and the last one finishes the batch")
    func counts() throws {
        var batch = try Self.batch(.running)
        batch.add(Self.round(left: 4, accepted: 3, rejected: 2, unknown: 1))
        var isFinished = [batch.finish(at: Self.now)]
        #expect(batch.counts.waiting == 4 && batch.state == .running)
        batch.add(Self.round(left: 0, accepted: 4))
        isFinished += [batch.finish(at: Self.now), batch.finish(at: Self.now)]
        #expect(isFinished == [false, true, false] && batch.state == .finished)
        var over = try Self.batch(.expired)
        over.giveUp(6)
        over.add(Self.round(left: 1, accepted: 3))
        let isNewlyFinished = over.finish(at: Self.now)
        #expect(over.counts.expired == 7 && over.counts.waiting == 0 && over.state == .expired && !isNewlyFinished)
    }

    @Test(
        "A canary is judged once, when all of its recipients were sent to",
        arguments: [(1, Batch.CanaryVerdict.passed(hold: .seconds(7))), (2, .failed)]
    )
    func canary(rejected: Int, verdict: Batch.CanaryVerdict) throws {
        var batch = try Self.batch(.running, total: 100)
        batch.options.canary = Batch.Canary(recipients: 10, maxRejectedPercent: 10, holdSeconds: 7)
        batch.add(Self.round(left: 91, accepted: 9 - rejected, rejected: rejected))
        var verdicts = [batch.judgeCanary()]
        #expect(batch.isInCanary)
        batch.add(Self.round(left: 90, accepted: 1))
        verdicts += [batch.judgeCanary(), batch.judgeCanary()]
        #expect(verdicts == [nil, verdict, nil] && !batch.isInCanary)
        #expect(batch.state == (verdict == .failed ? .paused : .running))
        #expect(batch.reason == (verdict == .failed ? .canary : nil))
    }

    @Test("The reason of a caller's pause stays when the canary fails meanwhile")
    func canaryOfPaused() throws {
        var batch = try Self.batch(.running)
        batch.options.canary = Batch.Canary(recipients: 1, maxRejectedPercent: 0, holdSeconds: 0)
        _ = batch.apply(.pause(.caller), at: Self.now)
        batch.add(Self.round(left: 9, rejected: 1))
        let verdict = batch.judgeCanary()
        #expect(verdict == .failed && batch.reason == .caller)
    }

    @Test(
        "FCM's peaks last from two minutes before a quarter of an hour until two minutes after it",
        arguments: [
            ("12:12:59", "12:12:59"), ("12:13:00", "12:17:00"), ("12:15:00", "12:17:00"), ("12:16:59", "12:17:00"),
            ("12:17:00", "12:17:00"), ("23:58:30", "00:02:00"),
        ]
    )
    func peaks(time: String, after: String) throws {
        let day = after < time ? "02" : "01"
        let (from, to) = (Timestamp(rfc3339: "2026-12-01T\(time)Z"), Timestamp(rfc3339: "2026-12-\(day)T\(after)Z"))
        #expect(try #require(from).afterPeak == to)
        var batch = try Self.batch(.open)
        batch.options.avoidsPeaks = true
        batch.options.lifetimeSeconds = 60
        batch.dueAt = try #require(from)
        _ = batch.apply(.start(parts: 1, recipients: 10, keyID: "starter"), at: try #require(from))
        #expect(batch.dueAt == to && batch.expiresAt == to?.advanced(by: .seconds(60)) && batch.keyID == "starter")
    }
}
