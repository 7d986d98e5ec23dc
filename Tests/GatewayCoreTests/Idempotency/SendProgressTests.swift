import FCMModel
import GatewayTestKit
import Testing

@testable import GatewayCore

struct SendProgressTests {
    private static func sample() -> SendReservation.Progress {
        var progress = SendReservation.Progress(count: 1_000)
        progress.start(0..<400)
        progress.finish(0, .accepted(Acceptance(messageID: "0:1%é", replacementToken: "neu")))
        progress.finish(1, .accepted(Acceptance(messageID: "")))
        progress.finish(399, .rejected(.unregistered))
        progress.finish(
            7,
            .rejected(Rejection(code: .deviceRateExceeded, retryAfter: 0, limitedBy: .fcm, legacyName: .unavailable))
        )
        return progress
    }

    @Test("Encoded progress decodes to the same progress")
    func roundTrip() throws {
        for count in [0, 1] {
            let progress = SendReservation.Progress(count: count)
            #expect(SendReservation.Progress(progress.bytes, count: count) == progress)
        }
        let sample = Self.sample()
        #expect(SendReservation.Progress(sample.bytes, count: 1_000) == sample)
        let codes = OutcomeCode.allCases
        let all = SendReservation.Progress(codes.map { .rejected($0) })
        #expect(SendReservation.Progress(all.bytes, count: codes.count) == all)
    }

    @Test("Truncated and extended bytes are refused, and damaged bytes do not crash")
    func damage() {
        let bytes = Self.sample().bytes
        for count in 0..<min(bytes.count, 200) {
            #expect(SendReservation.Progress(Array(bytes.prefix(count)), count: 9) == nil)
        }
        #expect(SendReservation.Progress(bytes + [0], count: 1_000) == nil)
        var generator = SeededGenerator(seed: 7)
        for _ in 1...2_000 {
            var changed = bytes
            changed[Int.random(in: 0..<changed.count, using: &generator)] = .random(in: 0...255, using: &generator)
            _ = SendReservation.Progress(changed, count: 1_000)
        }
    }

    @Test("Places beyond the recipients are left out")
    func places() throws {
        let progress = try #require(SendReservation.Progress(Self.sample().bytes, count: 2))
        #expect(progress.started == [0, 1])
        #expect(
            progress.results() == [
                .accepted(Acceptance(messageID: "0:1%é", replacementToken: "neu")),
                .accepted(Acceptance(messageID: "")),
            ]
        )
        #expect(progress.remaining.isEmpty)
    }

    @Test("Results combine the known outcomes of started recipients with later outcomes of the others")
    func results() {
        var progress = SendReservation.Progress(count: 5)
        progress.start([1, 3])
        progress.finish(3, .accepted(Acceptance(messageID: "m")))
        #expect(progress.remaining == [0, 2, 4])
        let later: [RecipientOutcome] = [.rejected(.unregistered), .accepted(Acceptance(messageID: "n"))]
        #expect(
            progress.results(with: later) == [
                later[0], .rejected(.outcomeUnknown), later[1], .accepted(Acceptance(messageID: "m")),
                .rejected(.upstreamUnavailable),
            ]
        )
        progress.takeBack([1])
        #expect(progress.remaining == [0, 1, 2, 4])
    }
}
