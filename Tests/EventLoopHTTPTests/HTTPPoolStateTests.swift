import Testing

@testable import EventLoopHTTP

@Suite("HTTPPoolState")
struct HTTPPoolStateTests {
    private final class Connection {}
    private final class Waiter {}
    private typealias State = HTTPPoolState<Connection, Waiter>

    @Test("Connections are opened up to the maximum, then exchanges wait up to theirs")
    func bounds() {
        var state = State(maxConnections: 2, maxWaiters: 1)
        #expect(Self.name(state.checkOut(for: Waiter())) == "connect")
        #expect(Self.name(state.checkOut(for: Waiter())) == "connect")
        #expect(Self.name(state.checkOut(for: Waiter())) == "wait")
        #expect(Self.name(state.checkOut(for: Waiter())) == "exhausted")
        #expect(state.slots == 2)
        #expect(state.waiterCount == 1)
    }

    @Test("The connection used last is reused first")
    func reusesLast() {
        var state = State(maxConnections: 2, maxWaiters: 1)
        _ = state.checkOut(for: Waiter())
        _ = state.checkOut(for: Waiter())
        let (first, second) = (Connection(), Connection())
        #expect(state.checkIn(first) == nil)
        #expect(state.checkIn(second) == nil)
        guard case .reuse(let reused) = state.checkOut(for: Waiter()) else {
            Issue.record("An idle connection was not reused.")
            return
        }
        #expect(reused === second)
    }

    @Test("A returned connection goes to the exchange that has waited longest")
    func servesInOrder() {
        var state = State(maxConnections: 1, maxWaiters: 3)
        _ = state.checkOut(for: Waiter())
        let waiters = [Waiter(), Waiter(), Waiter()]
        for waiter in waiters {
            _ = state.checkOut(for: waiter)
        }
        state.remove(waiters[1])
        let connection = Connection()
        #expect(state.checkIn(connection) === waiters[0])
        #expect(state.checkIn(connection) === waiters[2])
        #expect(state.checkIn(connection) == nil)
        #expect(state.idleCount == 1)
    }

    @Test("The place of a lost connection goes to a waiting exchange, or is free")
    func freesSlots() {
        var state = State(maxConnections: 1, maxWaiters: 1)
        let waiter = Waiter()
        _ = state.checkOut(for: Waiter())
        _ = state.checkOut(for: waiter)
        #expect(state.freeSlot(of: nil) === waiter)
        #expect(state.slots == 1)
        let connection = Connection()
        _ = state.checkIn(connection)
        #expect(state.freeSlot(of: connection) == nil)
        #expect(state.slots == 0)
        #expect(state.idleCount == 0)
    }

    private static func name(_ result: State.CheckOut) -> String {
        switch result {
        case .reuse: "reuse"
        case .connect: "connect"
        case .wait: "wait"
        case .exhausted: "exhausted"
        }
    }
}
