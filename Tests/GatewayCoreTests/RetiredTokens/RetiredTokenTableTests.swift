import GatewayTestKit
import Testing

@testable import GatewayCore

struct RetiredTokenTableTests {
    typealias Table = RetiredTokenTable

    private let clock = ManualClock()

    private func table(acceptedBefore: Int = 10_000) throws -> Table {
        var table = try self.table(SpikeDetector(at: self.clock.now()))
        _ = table.learn([], accepted: acceptedBefore, at: self.clock.now())
        return table
    }

    private func table(_ detector: SpikeDetector) throws -> Table {
        Table(of: RetiredTokenOwner(try .sample()), detector: detector)
    }

    private static func report(_ key: UInt64, _ evidence: Table.Report.Evidence) -> Table.Report {
        Table.Report(key: key, kind: .token, text: "token \(key)", evidence: evidence)
    }

    /// A step of a token's life and what is seen after it.
    struct Turn: Sendable {
        enum Event: Sendable {
            case dead, alive, replaced(UInt16), pause(Int), spike, calm
        }

        var event: Event
        var note: WrittenChange?
        var state: RetiredToken.State?
        var standing: RetiredTokenTable.Standing
    }

    struct Life: Sendable, CustomTestStringConvertible {
        var name: String
        var turns: [Turn]

        var testDescription: String { self.name }
    }

    static let lives = [
        Life(
            name: "dies, is refused for a day, is tried again, is dead for another day",
            turns: [
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
                Turn(event: .pause(3_599), state: .pending, standing: .refused),
                Turn(event: .pause(1), state: .unregistered, standing: .refused),
                Turn(event: .pause(82_799), state: .unregistered, standing: .refused),
                Turn(event: .pause(1), state: .unregistered, standing: .listed),
                Turn(event: .dead, note: .touch, state: .unregistered, standing: .refused),
                Turn(event: .pause(86_400), state: .unregistered, standing: .listed),
                Turn(event: .alive, note: .remove, state: nil, standing: .unknown),
            ]
        ),
        Life(
            name: "dies, and an answer that was on its way says that it lives",
            turns: [
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
                Turn(event: .dead, state: .pending, standing: .refused),
                Turn(event: .alive, note: .remove, state: nil, standing: .unknown),
                Turn(event: .pause(3_600), state: nil, standing: .unknown),
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
            ]
        ),
        Life(
            name: "is replaced, again by the same, by another, and dies",
            turns: [
                Turn(event: .replaced(1), note: .put(.replaced), state: .replaced, standing: .listed),
                Turn(event: .replaced(1), state: .replaced, standing: .listed),
                Turn(event: .alive, state: .replaced, standing: .listed),
                Turn(event: .pause(86_400), state: .replaced, standing: .listed),
                Turn(event: .replaced(1), note: .touch, state: .replaced, standing: .listed),
                Turn(event: .replaced(2), note: .put(.replaced), state: .replaced, standing: .listed),
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
                Turn(event: .pause(86_400), state: .unregistered, standing: .listed),
                Turn(event: .replaced(2), note: .put(.replaced), state: .replaced, standing: .listed),
            ]
        ),
        Life(
            name: "dies shortly before a spike, and once more after it",
            turns: [
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
                Turn(event: .spike, state: .suspected, standing: .listed),
                Turn(event: .pause(86_400), state: .suspected, standing: .listed),
                Turn(event: .dead, note: .touch, state: .suspected, standing: .listed),
                Turn(event: .dead, state: .suspected, standing: .listed),
                Turn(event: .calm, state: .suspected, standing: .listed),
                Turn(event: .dead, note: .putKeepingSince(.pending), state: .pending, standing: .refused),
                Turn(event: .pause(3_600), state: .unregistered, standing: .refused),
            ]
        ),
        Life(
            name: "dies amid a spike and lives after it",
            turns: [
                Turn(event: .spike, state: nil, standing: .unknown),
                Turn(event: .dead, note: .put(.suspected), state: .suspected, standing: .listed),
                Turn(event: .pause(86_400 * 30), state: .suspected, standing: .listed),
                Turn(event: .alive, note: .remove, state: nil, standing: .unknown),
            ]
        ),
        Life(
            name: "was fed before a spike, which changes nothing about it",
            turns: [
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
                Turn(event: .pause(3_600), state: .unregistered, standing: .refused),
                Turn(event: .spike, state: .unregistered, standing: .refused),
                Turn(event: .pause(82_800), state: .unregistered, standing: .listed),
                Turn(event: .dead, note: .touch, state: .unregistered, standing: .refused),
            ]
        ),
        Life(
            name: "dies on a clock that is set back",
            turns: [
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
                Turn(event: .pause(-3_600), state: .pending, standing: .refused),
                Turn(event: .pause(-1), state: .unregistered, standing: .listed),
                Turn(event: .dead, note: .touch, state: .unregistered, standing: .refused),
            ]
        ),
    ]

    @Test("A token's life", arguments: Self.lives)
    func life(_ life: Life) throws {
        var table = try self.table()
        for (number, turn) in life.turns.enumerated() {
            var note: WrittenChange?
            func learn(_ evidence: Table.Report.Evidence) {
                let (changes, _) = table.learn([Self.report(7, evidence)], accepted: 0, at: self.clock.now())
                note = changes.compactMap(\.written).first
            }
            switch turn.event {
            case .dead: learn(.dead)
            case .alive: learn(.alive)
            case .replaced(let bits): learn(.replaced(by: "token of \(bits)", bits))
            case .pause(let seconds): self.clock.advance(by: .seconds(seconds))
            case .spike:
                let others = (1_000..<1_100).map { Self.report($0, .dead) }
                let (_, transition) = table.learn(others, accepted: 0, at: self.clock.now())
                #expect(transition == .began)
            case .calm:
                let (_, transition) = table.learn([], accepted: 1_000, at: self.clock.now())
                #expect(transition == .ended)
            }
            _ = table.settle(accepted: 0, at: self.clock.now())
            #expect(note == turn.note, "turn \(number)")
            #expect(table.mark(of: 7)?.state == turn.state, "turn \(number)")
            #expect(table.standing(of: 7, at: self.clock.now()) == turn.standing, "turn \(number)")
        }
    }

    @Test("One token reported a thousand times at once is one death")
    func repeated() throws {
        var table = try self.table(acceptedBefore: 10)
        let reports = Array(repeating: Self.report(1, .dead), count: 1_000)
        let (changes, transition) = table.learn(reports, accepted: 0, at: self.clock.now())
        #expect(transition == .none)
        #expect(changes.map(\.written) == [.put(.pending)])
        #expect(table.count == 1)
    }

    @Test("A spike turns what waits into suspects, in the order of its reports, and nothing else")
    func spike() throws {
        var table = try self.table()
        for key in UInt64(1)...5 {
            _ = table.learn([Self.report(key, .dead)], accepted: 100, at: self.clock.now())
            self.clock.advance(by: .seconds(900))
        }
        #expect(table.settle(accepted: 0, at: self.clock.now()).0.moved(to: .unregistered) == [1, 2])
        _ = table.learn([Self.report(3, .alive)], accepted: 0, at: self.clock.now())
        let many = (100..<1_000).map { Self.report($0, .dead) }
        let (changes, _) = table.learn(many, accepted: 0, at: self.clock.now())
        #expect(changes.moved(to: .suspected) == [4, 5])
        #expect(changes.compactMap(\.written) == Array(repeating: .put(.suspected), count: 900))
        #expect(table.count(of: .suspected) == 902)
        #expect(table.count(of: .unregistered) == 2)
        #expect(table.count(of: .pending) == 0)
        self.clock.advance(by: .seconds(86_400))
        #expect(table.settle(accepted: 0, at: self.clock.now()).0.moved(to: .unregistered).isEmpty)
    }

    @Test("What was pending when the process ended amid a spike is suspected, and the store is told")
    func restoredAmidSpike() throws {
        var detector = SpikeDetector(at: self.clock.now())
        _ = detector.note(accepted: 0, unregistered: 100, at: self.clock.now())
        var table = try self.table(detector)
        let changes = table.restore([try self.entry(1, .pending), try self.entry(2, .unregistered)])
        #expect(changes.moved(to: .suspected) == [1])
        #expect(table.standing(of: 1, at: self.clock.now()) == .listed)
        #expect(table.standing(of: 2, at: self.clock.now()) == .refused)
    }

    private func entry(
        _ key: UInt64,
        _ state: RetiredToken.State,
        after duration: Duration = .zero
    ) throws -> RetiredTokenEntry {
        RetiredTokenEntry(
            tenant: try #require(TenantID("acme")),
            key: key,
            state: state,
            reportedAt: self.clock.now().advanced(by: duration),
            replacement: 0
        )
    }

    @Test("What the store has dropped is forgotten, unless it was reported since")
    func forgotten() throws {
        var table = try self.table()
        _ = table.learn([Self.report(1, .dead)], accepted: 0, at: self.clock.now())
        table.forget(try self.entry(1, .pending, after: .seconds(-1)))
        #expect(table.count == 1)
        table.forget(try self.entry(1, .pending))
        table.forget(try self.entry(2, .pending))
        #expect(table.count == 0)
        self.clock.advance(by: .seconds(86_400))
        #expect(table.settle(accepted: 0, at: self.clock.now()).0.moved(to: .unregistered).isEmpty)
    }

    @Test("The table agrees with a simple model of it, whatever happens", arguments: 1...60)
    func model(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        var table = try self.table(acceptedBefore: Int.random(in: 0...2_000, using: &generator))
        var model = RetiredTokenModel(detector: table.detector)
        for _ in 0..<400 {
            let now = self.clock.now()
            switch Int.random(in: 0..<10, using: &generator) {
            case 0:
                self.clock.advance(by: .seconds(Int.random(in: 0...40_000, using: &generator)))
            case 1:
                let (changes, _) = table.settle(accepted: 0, at: now)
                #expect(Set(changes.moved(to: .unregistered)) == model.settle(at: now))
            default:
                let isIncident = Int.random(in: 0..<20, using: &generator) == 0
                let reports = (0..<Int.random(in: 1...(isIncident ? 200 : 4), using: &generator))
                    .map { _ in
                        let key = UInt64.random(in: 0..<(isIncident ? 1_000 : 30), using: &generator)
                        let evidence: Table.Report.Evidence =
                            switch Int.random(in: 0..<(isIncident ? 1 : 5), using: &generator) {
                            case 0, 1: .dead
                            case 2: .replaced(by: "another", UInt16.random(in: 0...1, using: &generator))
                            default: .alive
                            }
                        return Self.report(key, evidence)
                    }
                let accepted = Int.random(in: 0...20, using: &generator)
                let (changes, _) = table.learn(reports, accepted: accepted, at: now)
                #expect(Set(changes.moved(to: .suspected)) == model.learn(reports, accepted: accepted, at: now))
            }
            #expect(model.disagreement(with: table, at: self.clock.now()) == nil)
        }
    }
}

/// What is written of one token that was reported.
enum WrittenChange: Sendable, Hashable {
    case put(RetiredToken.State)
    case putKeepingSince(RetiredToken.State)
    case touch
    case remove
}

extension RetiredTokenChange {
    fileprivate var written: WrittenChange? {
        switch self {
        case .put(_, _, let token, _, let keepsSince): keepsSince ? .putKeepingSince(token.state) : .put(token.state)
        case .touch: .touch
        case .remove: .remove
        case .move, .save, .count: nil
        }
    }
}

extension [RetiredTokenChange] {
    /// The tokens that were moved to a state, in order.
    fileprivate func moved(to state: RetiredToken.State) -> [UInt64] {
        self.flatMap { change -> [UInt64] in
            if case .move(_, let keys, state) = change { keys } else { [] }
        }
    }
}
