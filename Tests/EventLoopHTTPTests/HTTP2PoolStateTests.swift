import Testing

@testable import EventLoopHTTP

@Suite("HTTP2PoolState")
struct HTTP2PoolStateTests {
    private final class Connection {}
    private final class Waiter {}
    private typealias State = HTTP2PoolState<Connection, Waiter>

    private static func state(connections: Int = 4, waiters: Int = 1000) -> State {
        State(maxConnections: connections, maxWaiters: waiters)
    }

    /// A state with a connection for which an attempt was counted.
    private static func connected(limit: Int, connections: Int = 4) -> (State, Connection) {
        var state = Self.state(connections: connections)
        let connection = Connection()
        state.adopt(connection, streams: limit)
        return (state, connection)
    }

    private static func queue(_ count: Int, in state: inout State) {
        for _ in 0..<count {
            guard case .wait = state.admit(Waiter(), of: 0) else {
                Issue.record("An exchange did not have to wait.")
                return
            }
        }
    }

    private static func expectNext(_ state: inout State, exists: Bool) {
        let next = state.next()
        #expect((next != nil) == exists)
    }

    private static func expectAttempt(_ state: inout State, made: Bool) {
        let isMade = state.shouldConnect()
        #expect(isMade == made)
    }

    private static func attempts(_ state: inout State) -> Int {
        while state.shouldConnect() {}
        return state.attempts
    }

    @Test("While nothing is known of the peer, one attempt is made for any number of exchanges")
    func firstAttempt() {
        var state = Self.state()
        Self.expectAttempt(&state, made: false)
        Self.queue(500, in: &state)
        let attempts = Self.attempts(&state)
        #expect(attempts == 1)
    }

    @Test(
        "A burst makes as many attempts as it needs connections, up to the maximum",
        arguments: [
            (1, 1), (10, 1), (11, 2), (25, 3), (500, 4),
        ]
    )
    func attempts(waiters: Int, expected: Int) {
        var (state, connection) = Self.connected(limit: 10)
        state.retire(connection, carrying: [])
        Self.queue(waiters, in: &state)
        let attempts = Self.attempts(&state)
        #expect(attempts == expected)
    }

    @Test("A connection carries as many exchanges as its limit, and the next gets what becomes free")
    func admits() {
        var (state, connection) = Self.connected(limit: 2)
        for _ in 0..<2 {
            guard case .start(let used) = state.admit(Waiter(), of: 0) else {
                Issue.record("There is room.")
                return
            }
            #expect(used === connection)
        }
        let waiter = Waiter()
        guard case .wait = state.admit(waiter, of: 0) else {
            Issue.record("There is no room.")
            return
        }
        Self.expectNext(&state, exists: false)
        state.streamEnded(on: connection, of: 0)
        let served = state.next()
        #expect(served?.0 === waiter)
        Self.expectNext(&state, exists: false)
        #expect(state.waiterCount == 0)
    }

    @Test("A lowered limit holds back exchanges until enough streams have ended; a raised one lets them go")
    func limits() {
        var (state, connection) = Self.connected(limit: 3)
        for _ in 0..<3 { _ = state.admit(Waiter(), of: 0) }
        Self.queue(3, in: &state)
        state.setLimit(1, of: connection)
        for _ in 0..<2 {
            state.streamEnded(on: connection, of: 0)
            Self.expectNext(&state, exists: false)
        }
        state.streamEnded(on: connection, of: 0)
        Self.expectNext(&state, exists: true)
        Self.expectNext(&state, exists: false)
        state.setLimit(2, of: connection)
        Self.expectNext(&state, exists: true)
    }

    @Test("The queue is bounded, and those who leave it make room")
    func bounds() {
        var state = Self.state(waiters: 2)
        let waiter = Waiter()
        _ = state.admit(waiter, of: 0)
        _ = state.admit(Waiter(), of: 0)
        guard case .exhausted = state.admit(Waiter(), of: 0) else {
            Issue.record("The queue is full.")
            return
        }
        state.remove(waiter, of: 0)
        #expect(state.waiterCount == 1)
        let rest = state.removeAllWaiters()
        #expect(rest.count == 1)
    }

    @Test("A refused exchange waits for another connection, ahead of those that were never sent")
    func avoids() {
        var (state, connection) = Self.connected(limit: 1)
        _ = state.admit(Waiter(), of: 0)
        Self.queue(1, in: &state)
        let refused = Waiter()
        state.streamEnded(on: connection, of: 0)
        _ = state.next()
        guard case .wait = state.admit(refused, of: 0, avoiding: connection) else {
            Issue.record("Only the connection that refused it is there.")
            return
        }
        Self.expectAttempt(&state, made: true)
        state.streamEnded(on: connection, of: 0)
        Self.expectNext(&state, exists: false)
        let other = Connection()
        state.connected(other, streams: 1)
        let served = state.next()
        #expect(served?.0 === refused)
    }

    @Test("Where there can be no other connection, a refused exchange goes back to the same")
    func avoidsInVain() {
        var (state, connection) = Self.connected(limit: 1, connections: 1)
        guard case .start(let used) = state.admit(Waiter(), of: 0, avoiding: connection) else {
            Issue.record("There is room.")
            return
        }
        #expect(used === connection)
    }

    @Test("A failed attempt gives up the exchanges only when there is no other way for them")
    func failedAttempt() {
        var (state, connection) = Self.connected(limit: 1)
        _ = state.admit(Waiter(), of: 0)
        Self.queue(1, in: &state)
        Self.expectAttempt(&state, made: true)
        let spared = state.attemptFailed()
        #expect(spared.isEmpty)
        state.retire(connection, carrying: [])
        Self.expectAttempt(&state, made: true)
        let failed = state.attemptFailed()
        #expect(failed.count == 1)
        #expect(state.attempts == 0)
    }

    @Test("A retired connection gets nothing more, and its streams are no longer counted")
    func retires() {
        var (state, connection) = Self.connected(limit: 5)
        _ = state.admit(Waiter(), of: 0)
        state.retire(connection, carrying: [])
        state.streamEnded(on: connection, of: 0)
        #expect(state.connectionCount == 0)
        Self.queue(1, in: &state)
        Self.expectNext(&state, exists: false)
    }
}
