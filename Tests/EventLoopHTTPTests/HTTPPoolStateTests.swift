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
        #expect(Self.name(state.checkOut(for: Waiter(), of: 0)) == "connect")
        #expect(Self.name(state.checkOut(for: Waiter(), of: 0)) == "connect")
        #expect(Self.name(state.checkOut(for: Waiter(), of: 0)) == "wait")
        #expect(Self.name(state.checkOut(for: Waiter(), of: 0)) == "exhausted")
        #expect(state.slots == 2)
        #expect(state.waiterCount == 1)
    }

    @Test("The connection used last is reused first")
    func reusesLast() {
        var state = State(maxConnections: 2, maxWaiters: 1)
        _ = state.checkOut(for: Waiter(), of: 0)
        _ = state.checkOut(for: Waiter(), of: 0)
        let (first, second) = (Connection(), Connection())
        state.checkIn(first, from: 0)
        state.checkIn(second, from: 0)
        guard case .place(.reuse(let reused)) = state.checkOut(for: Waiter(), of: 0) else {
            Issue.record("An idle connection was not reused.")
            return
        }
        #expect(reused === second)
    }

    @Test("A returned connection goes to the exchange that has waited longest")
    func servesInOrder() {
        var state = State(maxConnections: 1, maxWaiters: 3)
        _ = state.checkOut(for: Waiter(), of: 0)
        let waiters = [Waiter(), Waiter(), Waiter()]
        for waiter in waiters {
            _ = state.checkOut(for: waiter, of: 0)
        }
        state.remove(waiters[1], of: 0)
        let connection = Connection()
        for expected in [waiters[0], waiters[2]] {
            state.checkIn(connection, from: 0)
            guard case .some((let waiter, .reuse(let reused))) = state.next() else {
                Issue.record("The connection is idle.")
                return
            }
            #expect(waiter === expected)
            #expect(reused === connection)
        }
        state.checkIn(connection, from: 0)
        #expect(state.next()?.0 == nil)
        #expect(state.idleCount == 1)
    }

    @Test("The place of a lost connection goes to a waiting exchange, or is free")
    func freesSlots() {
        var state = State(maxConnections: 1, maxWaiters: 1)
        let waiter = Waiter()
        _ = state.checkOut(for: Waiter(), of: 0)
        _ = state.checkOut(for: waiter, of: 0)
        state.freeSlot(of: nil, from: 0)
        guard case .some((let served, .connect)) = state.next() else {
            Issue.record("The place is free.")
            return
        }
        #expect(served === waiter)
        #expect(state.slots == 1)
        let connection = Connection()
        state.checkIn(connection, from: 0)
        state.freeSlot(of: connection, from: nil)
        #expect(state.slots == 0)
        #expect(state.idleCount == 0)
    }

    private static func name(_ result: State.CheckOut) -> String {
        switch result {
        case .place(.reuse): "reuse"
        case .place(.connect): "connect"
        case .wait: "wait"
        case .exhausted: "exhausted"
        }
    }
}
