import GatewayCore
import GatewayTestKit
import Testing

struct SpikeDetectorTests {
    /// One step of a story: recipients of one send, so many times, with a pause after each.
    struct Step: Sendable {
        var accepted = 0
        var unregistered = 0
        var times = 1
        var pause = Duration.zero
    }

    struct Story: Sendable, CustomTestStringConvertible {
        /// Whether a spike is noticed at any time, and still goes on at the end.
        enum Spike {
            case none, passing, lasting
        }

        var name: String
        var spike: Spike
        var steps: [Step]

        var testDescription: String { self.name }

        init(_ name: String, _ spike: Spike, _ steps: [Step]) {
            (self.name, self.spike, self.steps) = (name, spike, steps)
        }
    }

    private static let clean = Step(accepted: 1_000, times: 5)

    static let stories: [Story] = [
        Story("nothing", .none, []),
        Story(
            "950 of 1,000 in one list after a clean history",
            .lasting,
            [Step(accepted: 1_000, times: 20, pause: .seconds(60)), Step(accepted: 50, unregistered: 950)]
        ),
        Story(
            "950 of 1,000 one by one, at the same moment as a clean history of a million",
            .lasting,
            [Step(accepted: 1_000, times: 1_000), Step(accepted: 1, times: 50), Step(unregistered: 1, times: 950)]
        ),
        Story("a first list of which 5 % are dead", .none, [Step(accepted: 950, unregistered: 50)]),
        Story(
            "5 % over an hour",
            .none,
            (0..<50).map { _ in Step(accepted: 1, times: 19, pause: .seconds(3)) }
                .flatMap { [$0, Step(unregistered: 1, pause: .seconds(3))] }
        ),
        Story(
            "5 % over an hour, the dead ones first, after a clean day",
            .none,
            [
                Step(accepted: 1_000, pause: .seconds(86_400)), Step(unregistered: 1, times: 50, pause: .seconds(3)),
                Step(accepted: 1, times: 950, pause: .seconds(3)),
            ]
        ),
        Story(
            "5 % over an hour, the dead ones last",
            .none,
            [Step(accepted: 1, times: 950, pause: .seconds(3)), Step(unregistered: 1, times: 50, pause: .seconds(3))]
        ),
        Story(
            "a few tokens of a small service, one after the other",
            .none,
            [Step(accepted: 5, times: 10), Step(unregistered: 1, times: 10)]
        ),
        Story("all 20 tokens of a small service", .lasting, [Step(accepted: 20, times: 5), Step(unregistered: 20)]),
        Story(
            "40 % dead where 35 % always were",
            .none,
            [
                Step(accepted: 65, unregistered: 15, times: 40, pause: .seconds(600)),
                Step(accepted: 65, unregistered: 35, times: 400, pause: .seconds(600)),
                Step(accepted: 60, unregistered: 40, times: 10, pause: .seconds(600)),
            ]
        ),
        Story(
            "a spike that passes",
            .passing,
            [Self.clean, Step(accepted: 50, unregistered: 950), Step(accepted: 1, times: 401)]
        ),
        Story(
            "a spike of which some are accepted all the time",
            .lasting,
            [Self.clean, Step(accepted: 50, unregistered: 950, times: 1_000)]
        ),
        Story(
            "60 % dead for a week is what is to be expected from then on",
            .passing,
            [Self.clean, Step(accepted: 400, unregistered: 600, times: 9 * 24, pause: .seconds(3_600))]
        ),
        Story(
            "everything dead for a month is still a spike",
            .lasting,
            [Self.clean, Step(unregistered: 1_000, times: 30 * 24, pause: .seconds(3_600))]
        ),
        Story(
            "time alone ends nothing",
            .lasting,
            [Self.clean, Step(unregistered: 950, pause: .seconds(86_400 * 365)), Step(unregistered: 1)]
        ),
        Story("a spike on the first day", .lasting, [Step(unregistered: 500)]),
    ]

    @Test("A spike is told from ordinary deaths", arguments: Self.stories)
    func story(_ story: Story) {
        let clock = ManualClock()
        var detector = SpikeDetector(at: clock.now())
        var isNoticed = false
        for step in story.steps {
            for _ in 0..<step.times {
                let before = detector.isSpiking
                let (accepted, dead) = (step.accepted, step.unregistered)
                switch detector.note(accepted: accepted, unregistered: dead, at: clock.now()) {
                case .none: #expect(detector.isSpiking == before)
                case .began: #expect(!before && detector.isSpiking)
                case .ended: #expect(before && !detector.isSpiking)
                }
                isNoticed = isNoticed || detector.isSpiking
                clock.advance(by: step.pause)
            }
        }
        #expect(isNoticed == (story.spike != .none))
        #expect(detector.isSpiking == (story.spike == .lasting))
    }

    @Test("A steady share of at most a tenth is never a spike, in whatever portions", arguments: 1...40)
    func steadyShare(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let clock = ManualClock()
        var detector = SpikeDetector(at: clock.now())
        let percent = Int.random(in: 0...10, using: &generator)
        for _ in 0..<2_000 {
            let size = [1, 1, 10, 100, 1_000][Int.random(in: 0..<5, using: &generator)]
            let dead = (0..<size).count { _ in Int.random(in: 0..<100, using: &generator) < percent }
            let transition = detector.note(accepted: size - dead, unregistered: dead, at: clock.now())
            #expect(transition == .none)
            clock.advance(by: .seconds(Int.random(in: 0...120, using: &generator)))
        }
    }

    @Test("Nine in ten dead are noticed within 60 reports, whatever came before", arguments: 1...40)
    func suddenDeath(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let clock = ManualClock()
        var detector = SpikeDetector(at: clock.now())
        for _ in 0..<Int.random(in: 0...300, using: &generator) {
            let size = Int.random(in: 1...5_000, using: &generator)
            let dead = size * Int.random(in: 0...5, using: &generator) / 100
            _ = detector.note(accepted: size - dead, unregistered: dead, at: clock.now())
            clock.advance(by: .seconds(Int.random(in: 0...3_600, using: &generator)))
        }
        var reports = 0
        while !detector.isSpiking, reports < 1_000 {
            let isDead = Int.random(in: 0..<10, using: &generator) > 0
            if isDead { reports += 1 }
            _ = detector.note(accepted: isDead ? 0 : 1, unregistered: isDead ? 1 : 0, at: clock.now())
        }
        #expect(reports <= 60)
    }

    @Test("What is stored goes on as if nothing had happened", arguments: 1...20)
    func restored(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let clock = ManualClock()
        var detector = SpikeDetector(at: clock.now())
        for _ in 0..<500 {
            var restored = SpikeDetector(
                phase: detector.phase,
                history: detector.history,
                agedAt: detector.agedAt,
                surplus: detector.surplus,
                transitions: detector.transitions
            )
            let accepted = Int.random(in: 0...50, using: &generator)
            let dead = Int.random(in: 0...50, using: &generator)
            clock.advance(by: .seconds(Int.random(in: -600...7_200, using: &generator)))
            let transition = detector.note(accepted: accepted, unregistered: dead, at: clock.now())
            #expect(restored.note(accepted: accepted, unregistered: dead, at: clock.now()) == transition)
            #expect(restored == detector)
        }
    }

    @Test("Damaged numbers count as none", arguments: [Double.nan, .infinity, -1, -.infinity] as [Double])
    func damaged(value: Double) {
        var detector = SpikeDetector(
            phase: .steady,
            history: SpikeDetector.Tally(sent: value, unregistered: value),
            agedAt: Timestamp(microseconds: .min),
            surplus: .max
        )
        #expect(detector.history == SpikeDetector.Tally())
        #expect(detector.note(accepted: 1_000, unregistered: 0, at: .sample) == .none)
    }

    @Test("A clock that jumps takes history along at most")
    func clockJumps() {
        var detector = SpikeDetector(at: .sample)
        _ = detector.note(accepted: 100_000, unregistered: 0, at: .sample)
        _ = detector.note(accepted: 0, unregistered: 0, at: Timestamp.sample.advanced(by: .seconds(-86_400)))
        #expect(detector.history.sent == 100_000)
        _ = detector.note(accepted: 0, unregistered: 0, at: Timestamp.sample.advanced(by: .seconds(6 * 86_400)))
        #expect(abs(detector.history.sent - 50_000) < 100)
        _ = detector.note(accepted: 0, unregistered: 0, at: Timestamp.sample.advanced(by: .seconds(10_000 * 86_400)))
        #expect(detector.history.sent == 0)
    }
}
