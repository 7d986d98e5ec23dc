import GatewayTestKit
import Testing

@testable import GatewayCore

struct RetiredTokenBookTests {
    typealias Book = RetiredTokenBook

    private let clock = ManualClock()

    private func book(acceptedBefore: Int = 10_000) -> Book {
        var book = Book(purgeGuard: PurgeGuard(at: self.clock.now()))
        _ = book.learn([], accepted: acceptedBefore, at: self.clock.now())
        return book
    }

    /// A step of a token's life and what is seen after it.
    struct Turn: Sendable {
        enum Event: Sendable {
            case dead, alive, replaced(UInt16), pause(Int), jump, calm
        }

        var event: Event
        var note: RetiredTokenBook.Note?
        var state: RetiredTokenState?
        var standing: RetiredTokenBook.Standing
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
            name: "dies shortly before a jump, and once more after it",
            turns: [
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
                Turn(event: .jump, state: .suspected, standing: .listed),
                Turn(event: .pause(86_400), state: .suspected, standing: .listed),
                Turn(event: .dead, note: .touch, state: .suspected, standing: .listed),
                Turn(event: .dead, state: .suspected, standing: .listed),
                Turn(event: .calm, state: .suspected, standing: .listed),
                Turn(event: .dead, note: .putKeepingSince(.pending), state: .pending, standing: .refused),
                Turn(event: .pause(3_600), state: .unregistered, standing: .refused),
            ]
        ),
        Life(
            name: "dies amid a jump and lives after it",
            turns: [
                Turn(event: .jump, state: nil, standing: .unknown),
                Turn(event: .dead, note: .put(.suspected), state: .suspected, standing: .listed),
                Turn(event: .pause(86_400 * 30), state: .suspected, standing: .listed),
                Turn(event: .alive, note: .remove, state: nil, standing: .unknown),
            ]
        ),
        Life(
            name: "was fed before a jump, which changes nothing about it",
            turns: [
                Turn(event: .dead, note: .put(.pending), state: .pending, standing: .refused),
                Turn(event: .pause(3_600), state: .unregistered, standing: .refused),
                Turn(event: .jump, state: .unregistered, standing: .refused),
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
    func life(_ life: Life) {
        var book = self.book()
        for (number, turn) in life.turns.enumerated() {
            var note: Book.Note?
            func learn(_ evidence: Book.Evidence) {
                let lesson = book.learn([Book.Finding(key: 7, evidence: evidence)], accepted: 0, at: self.clock.now())
                note = lesson.notes.first ?? nil
            }
            switch turn.event {
            case .dead: learn(.dead)
            case .alive: learn(.alive)
            case .replaced(let replacement): learn(.replaced(by: replacement))
            case .pause(let seconds): self.clock.advance(by: .seconds(seconds))
            case .jump:
                let others = (1_000..<1_100).map { Book.Finding(key: $0, evidence: .dead) }
                #expect(book.learn(others, accepted: 0, at: self.clock.now()).transition == .began)
            case .calm:
                #expect(book.learn([], accepted: 1_000, at: self.clock.now()).transition == .ended)
            }
            _ = book.settle(at: self.clock.now())
            #expect(note == turn.note, "turn \(number)")
            #expect(book.mark(of: 7)?.state == turn.state, "turn \(number)")
            #expect(book.standing(of: 7, at: self.clock.now()) == turn.standing, "turn \(number)")
        }
    }

    @Test("One token reported a thousand times at once is one death")
    func repeated() {
        var book = self.book(acceptedBefore: 10)
        let findings = Array(repeating: Book.Finding(key: 1, evidence: .dead), count: 1_000)
        let lesson = book.learn(findings, accepted: 0, at: self.clock.now())
        #expect(lesson.transition == .none)
        #expect(lesson.notes.compactMap(\.self) == [.put(.pending)])
        #expect(book.count == 1)
    }

    @Test("A jump turns what waits into suspects, in the order of its reports, and nothing else")
    func jump() {
        var book = self.book()
        for key in UInt64(1)...5 {
            _ = book.learn([Book.Finding(key: key, evidence: .dead)], accepted: 100, at: self.clock.now())
            self.clock.advance(by: .seconds(900))
        }
        #expect(book.settle(at: self.clock.now()) == [1, 2])
        _ = book.learn([Book.Finding(key: 3, evidence: .alive)], accepted: 0, at: self.clock.now())
        let many = (100..<1_000).map { Book.Finding(key: $0, evidence: .dead) }
        let lesson = book.learn(many, accepted: 0, at: self.clock.now())
        #expect(lesson.suspected == [4, 5])
        #expect(lesson.notes.allSatisfy { $0 == .put(.suspected) })
        #expect(book.count(of: .suspected) == 902)
        #expect(book.count(of: .unregistered) == 2)
        #expect(book.count(of: .pending) == 0)
        self.clock.advance(by: .seconds(86_400))
        #expect(book.settle(at: self.clock.now()).isEmpty)
    }

    @Test("What was pending when the process ended amid a jump is suspected")
    func restoredAmidJump() {
        var purgeGuard = PurgeGuard(at: self.clock.now())
        _ = purgeGuard.note(accepted: 0, unregistered: 100, at: self.clock.now())
        var book = Book(purgeGuard: purgeGuard)
        let seconds = UInt32(self.clock.now().seconds)
        #expect(book.restore(1, Book.Mark(state: .pending, reportedAt: seconds)) == .suspected)
        #expect(book.restore(2, Book.Mark(state: .unregistered, reportedAt: seconds)) == .unregistered)
        #expect(book.standing(of: 1, at: self.clock.now()) == .listed)
        #expect(book.standing(of: 2, at: self.clock.now()) == .refused)
    }

    @Test("What the store has dropped is forgotten, unless it was reported since")
    func forgotten() {
        var book = self.book()
        _ = book.learn([Book.Finding(key: 1, evidence: .dead)], accepted: 0, at: self.clock.now())
        let seconds = UInt32(self.clock.now().seconds)
        book.forget(1, reportedUpTo: seconds - 1)
        #expect(book.count == 1)
        book.forget(1, reportedUpTo: seconds)
        book.forget(2, reportedUpTo: seconds)
        #expect(book.count == 0)
        self.clock.advance(by: .seconds(86_400))
        #expect(book.settle(at: self.clock.now()).isEmpty)
    }

    @Test("The book agrees with a simple model of it, whatever happens", arguments: 1...60)
    func model(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var book = self.book(acceptedBefore: Int.random(in: 0...2_000, using: &generator))
        var model = BookModel(guardedBy: book.purgeGuard)
        for _ in 0..<400 {
            let now = self.clock.now()
            switch Int.random(in: 0..<10, using: &generator) {
            case 0:
                self.clock.advance(by: .seconds(Int.random(in: 0...40_000, using: &generator)))
            case 1:
                #expect(Set(book.settle(at: now)) == model.settle(at: now))
            default:
                let isIncident = Int.random(in: 0..<20, using: &generator) == 0
                let findings = (0..<Int.random(in: 1...(isIncident ? 200 : 4), using: &generator))
                    .map { _ in
                        let key = UInt64.random(in: 0..<(isIncident ? 1_000 : 30), using: &generator)
                        let evidence: Book.Evidence =
                            switch Int.random(in: 0..<(isIncident ? 1 : 5), using: &generator) {
                            case 0, 1: .dead
                            case 2: .replaced(by: UInt16.random(in: 0...1, using: &generator))
                            default: .alive
                            }
                        return Book.Finding(key: key, evidence: evidence)
                    }
                let accepted = Int.random(in: 0...20, using: &generator)
                let lesson = book.learn(findings, accepted: accepted, at: now)
                #expect(Set(lesson.suspected) == model.learn(findings, accepted: accepted, at: now))
            }
            #expect(model.disagreement(with: book, at: self.clock.now()) == nil)
        }
    }
}
