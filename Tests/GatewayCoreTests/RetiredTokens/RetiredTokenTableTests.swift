import GatewayTestKit
import Testing

@testable import GatewayCore

struct RetiredTokenTableTests {
    typealias Table = RetiredTokenList.Table

    private let clock = ManualClock()

    private func table() throws -> Table { Table(of: RetiredToken.Owner(try .sample())) }

    private static func report(_ key: UInt64, _ evidence: Table.Report.Evidence) -> Table.Report {
        Table.Report(key: key, kind: .token, text: "token \(key)", evidence: evidence)
    }

    /// A step of a token's life and the expected state after it.
    struct Turn: Sendable {
        enum Event: Sendable {
            case dead, alive, replaced(UInt16), pause(Int), spike, calm, suspectedInStore
        }

        var event: Event
        var note: WrittenChange?
        /// The counted recipients, and the unregistered ones among them.
        var tally = RetiredTokenCounts.Tally()
        var state: RetiredToken.State?
        var standing: RetiredTokenList.Table.Standing
    }

    struct Life: Sendable, CustomTestStringConvertible {
        var name: String
        var turns: [Turn]

        var testDescription: String { self.name }
    }

    private static let judged = RetiredTokenCounts.Tally(judged: 1)
    private static let news = RetiredTokenCounts.Tally(judged: 1, unregistered: 1)

    static let lives = [
        Life(
            name: "dies, is refused for a day, is tried again, is dead for another day",
            turns: [
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .unregistered, standing: .refused),
                Turn(event: .pause(86_399), state: .unregistered, standing: .refused),
                Turn(event: .dead, state: .unregistered, standing: .refused),
                Turn(event: .pause(1), state: .unregistered, standing: .listed),
                Turn(event: .dead, note: .report(.unregistered), state: .unregistered, standing: .refused),
                Turn(event: .pause(86_400), state: .unregistered, standing: .listed),
                Turn(event: .alive, note: .remove, tally: judged, state: nil, standing: .unknown),
            ]
        ),
        Life(
            name: "dies, and an answer that was on its way says that it lives",
            turns: [
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .unregistered, standing: .refused),
                Turn(event: .dead, state: .unregistered, standing: .refused),
                Turn(event: .alive, note: .remove, tally: judged, state: nil, standing: .unknown),
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .unregistered, standing: .refused),
            ]
        ),
        Life(
            name: "is replaced, again by the same, by another, and dies",
            turns: [
                Turn(event: .replaced(1), note: .report(.replaced), tally: judged, state: .replaced, standing: .listed),
                Turn(event: .replaced(1), tally: judged, state: .replaced, standing: .listed),
                Turn(event: .alive, tally: judged, state: .replaced, standing: .listed),
                Turn(event: .pause(86_400), state: .replaced, standing: .listed),
                Turn(event: .replaced(1), note: .report(.replaced), tally: judged, state: .replaced, standing: .listed),
                Turn(event: .replaced(2), note: .report(.replaced), tally: judged, state: .replaced, standing: .listed),
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .unregistered, standing: .refused),
                Turn(event: .replaced(2), note: .report(.replaced), tally: judged, state: .replaced, standing: .listed),
            ]
        ),
        Life(
            name: "dies before a spike, is suspected in it, and dies once more in it and after it",
            turns: [
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .unregistered, standing: .refused),
                Turn(event: .spike, state: .unregistered, standing: .refused),
                Turn(event: .suspectedInStore, state: .suspected, standing: .listed),
                Turn(event: .dead, tally: news, state: .suspected, standing: .listed),
                Turn(event: .pause(86_400), state: .suspected, standing: .listed),
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .suspected, standing: .listed),
                Turn(event: .calm, state: .suspected, standing: .listed),
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .unregistered, standing: .refused),
            ]
        ),
        Life(
            name: "dies amid a spike and lives after it",
            turns: [
                Turn(event: .spike, state: nil, standing: .unknown),
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .suspected, standing: .listed),
                Turn(event: .pause(86_400 * 30), state: .suspected, standing: .listed),
                Turn(event: .calm, state: .suspected, standing: .listed),
                Turn(event: .alive, note: .remove, tally: judged, state: nil, standing: .unknown),
            ]
        ),
        Life(
            name: "dies on a clock that is set back",
            turns: [
                Turn(event: .dead, note: .report(.unregistered), tally: news, state: .unregistered, standing: .refused),
                Turn(event: .pause(-3_600), state: .unregistered, standing: .refused),
                Turn(event: .pause(-1), state: .unregistered, standing: .listed),
                Turn(event: .dead, note: .report(.unregistered), state: .unregistered, standing: .refused),
            ]
        ),
    ]

    @Test("Each event of a token's life leads to the expected change, state and standing", arguments: Self.lives)
    func life(_ life: Life) throws {
        var table = try self.table()
        let tenant = try TenantID.sample()
        for (number, turn) in life.turns.enumerated() {
            var changes: [RetiredToken.Change] = []
            func learn(_ evidence: Table.Report.Evidence) {
                changes = table.learn([Self.report(7, evidence)], accepted: 0, at: self.clock.now())
            }
            switch turn.event {
            case .dead: learn(.dead)
            case .alive: learn(.alive)
            case .replaced(let bits): learn(.replaced(by: "token of \(bits)", bits))
            case .pause(let seconds): self.clock.advance(by: .seconds(seconds))
            case .spike: _ = table.setSpiking(true)
            case .calm: _ = table.setSpiking(false)
            case .suspectedInStore:
                let now = self.clock.now()
                table.restore([.init(tenant: tenant, key: 7, state: .suspected, reportedAt: now, replacement: 0)])
            }
            #expect(changes.compactMap(\.written).first == turn.note, "turn \(number)")
            #expect(changes.compactMap(\.tally).first ?? .init() == turn.tally, "turn \(number)")
            #expect(table.mark(of: 7)?.state == turn.state, "turn \(number)")
            #expect(table.standing(of: 7, at: self.clock.now()) == turn.standing, "turn \(number)")
            for state in RetiredToken.State.allCases {
                #expect(table.counts[state] == (state == turn.state ? 1 : 0), "turn \(number)")
            }
        }
    }

    @Test("A token reported a thousand times in one result counts once")
    func repeated() throws {
        var table = try self.table()
        let reports = Array(repeating: Self.report(1, .dead), count: 1_000)
        let changes = table.learn(reports, accepted: 10, at: self.clock.now())
        #expect(changes.compactMap(\.tally) == [RetiredTokenCounts.Tally(judged: 11, unregistered: 1)])
        #expect(changes.compactMap(\.written) == [.report(.unregistered)])
        #expect(table.count == 1)
    }

    @Test("The count precedes its reports, and each recipient is counted once")
    func countFirst() throws {
        var table = try self.table()
        let changes = table.learn([1, 2].map { Self.report($0, .dead) }, accepted: 5, at: self.clock.now())
        #expect(changes.map(\.tally) == [RetiredTokenCounts.Tally(judged: 7, unregistered: 2), nil, nil])
        let later = [0, 3].map { table.count(accepted: $0).map(\.tally) }
        #expect(later == [[], [RetiredTokenCounts.Tally(judged: 3)]])
    }

    @Test("Only the start and the end of a spike are changes")
    func knownSpike() throws {
        var table = try self.table()
        let changes = [false, true, true, false].map { table.setSpiking($0) }
        #expect(changes == [false, true, false, true])
    }

    @Test("Restored tokens have their stored standing, and tokens removed from the store are forgotten")
    func restored() throws {
        var table = try self.table()
        let tenant = try TenantID.sample()
        let now = self.clock.now()
        func entry(_ key: UInt64, _ state: RetiredToken.State?) -> RetiredToken.Entry {
            RetiredToken.Entry(tenant: tenant, key: key, state: state, reportedAt: now, replacement: 0)
        }
        table.restore(RetiredToken.State.allCases.enumerated().map { entry(UInt64($0), $1) })
        #expect((0...3).map { table.standing(of: $0, at: now) } == [.refused, .listed, .listed, .unknown])
        table.restore([0, 2, 9].map { entry($0, nil) })
        #expect(table.count == 1)
        #expect(table.counts == [.unregistered: 0, .suspected: 1, .replaced: 0])
    }
}

/// A change of one token that is written to the store.
enum WrittenChange: Sendable, Hashable {
    case report(RetiredToken.State)
    case remove
}

extension RetiredToken.Change {
    fileprivate var written: WrittenChange? {
        switch self {
        case .report(_, _, let token, _): .report(token.state)
        case .remove: .remove
        case .count: nil
        }
    }

    fileprivate var tally: RetiredTokenCounts.Tally? {
        if case .count(_, let tally) = self { tally } else { nil }
    }
}
