import GatewayTestKit
import Testing

@testable import EventLoopHTTP

@Suite("HTTPPoolState")
struct HTTPPoolStateTests {
    final class Connection: HTTPPoolMember {
        var places: HTTPPoolPlaces

        init(_ places: Int = 1) {
            self.places = HTTPPoolPlaces(limit: places)
        }
    }

    final class Waiter {
        let tenant: Int

        init(_ tenant: Int = 0) {
            self.tenant = tenant
        }
    }

    typealias State = HTTPPoolState<Connection, Waiter>

    /// A state whose peer's limits are not known yet.
    private static func state(connections: Int = 4, waiters: Int = 1000) -> State {
        State(maxConnections: connections, maxWaiters: waiters, expectedPlaces: nil)
    }

    /// A state with an unused connection.
    private static func connected(places: Int, connections: Int = 4) -> (State, Connection) {
        var state = Self.state(connections: connections)
        let connection = Connection(places)
        state.open([connection], maxConnections: connections)
        return (state, connection)
    }

    private static func queue(_ count: Int, in state: inout State) {
        for _ in 0..<count {
            let waits = state.admit(Waiter(), of: 0).waits
            #expect(waits)
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

    @Test("One attempt is made for any number of requests until a first connection is open")
    func firstAttempt() {
        var state = Self.state()
        Self.expectAttempt(&state, made: false)
        Self.queue(500, in: &state)
        let attempts = Self.attempts(&state)
        #expect(attempts == 1)
    }

    @Test(
        "A burst makes one attempt per connection that it needs, up to the maximum",
        arguments: [
            (1, 1, 1), (10, 1, 4), (1, 10, 1), (10, 10, 1), (11, 10, 2), (25, 10, 3), (500, 10, 4),
        ]
    )
    func attempts(waiters: Int, places: Int, expected: Int) {
        var (state, connection) = Self.connected(places: places)
        state.retire(connection, carrying: [])
        Self.queue(waiters, in: &state)
        let attempts = Self.attempts(&state)
        #expect(attempts == expected)
    }

    @Test("A connection fills its places, and waiting requests get freed places in order")
    func admits() {
        var (state, connection) = Self.connected(places: 2)
        for _ in 0..<2 {
            let used = state.admit(Waiter(), of: 0).started
            #expect(used === connection)
        }
        let waiters = [Waiter(), Waiter(), Waiter()]
        for waiter in waiters { _ = state.admit(waiter, of: 0) }
        state.remove(waiters[1], of: 0)
        for expected in [waiters[0], waiters[2]] {
            Self.expectNext(&state, exists: false)
            state.release(connection, of: 0)
            let served = state.next()
            #expect(served?.0 === expected)
        }
        #expect(state.waiterCount == 0)
    }

    @Test("Requests fill used connections before unused ones", arguments: [1, 10])
    func gathers(places: Int) {
        var state = State(maxConnections: 4, maxWaiters: 100, expectedPlaces: places)
        let connections = (0..<4).map { _ in Connection(places) }
        state.open(connections, maxConnections: 4)
        var used: Set<ObjectIdentifier> = []
        for _ in 0..<(3 * places) {
            guard let connection = state.admit(Waiter(), of: 0).started else { continue }
            used.insert(ObjectIdentifier(connection))
            if used.count > 1 { state.release(connection, of: 0) }
        }
        #expect(used.count == 2)
    }

    @Test("A lowered limit holds requests back until enough have ended; a raised one starts more")
    func limits() {
        var (state, connection) = Self.connected(places: 3)
        for _ in 0..<3 { _ = state.admit(Waiter(), of: 0) }
        Self.queue(3, in: &state)
        state.setLimit(1, of: connection)
        for _ in 0..<2 {
            state.release(connection, of: 0)
            Self.expectNext(&state, exists: false)
        }
        state.release(connection, of: 0)
        Self.expectNext(&state, exists: true)
        Self.expectNext(&state, exists: false)
        state.setLimit(2, of: connection)
        Self.expectNext(&state, exists: true)
    }

    @Test("The queue refuses requests beyond its limit and forgets removed ones")
    func bounds() {
        var state = Self.state(waiters: 2)
        let waiter = Waiter()
        _ = state.admit(waiter, of: 0)
        _ = state.admit(Waiter(), of: 0)
        let isRefused = state.admit(Waiter(), of: 0).isExhausted
        #expect(isRefused)
        state.remove(waiter, of: 0)
        #expect(state.waiterCount == 1)
        let rest = state.removeAllWaiters()
        #expect(rest.count == 1)
    }

    @Test("Requests for which connections are being opened don't count against the queue's limit")
    func boundsBesidesAttempts() {
        var state = State(maxConnections: 2, maxWaiters: 1, expectedPlaces: 1)
        for _ in 0..<3 {
            Self.queue(1, in: &state)
            _ = state.shouldConnect()
        }
        let isRefused = state.admit(Waiter(), of: 0).isExhausted
        #expect(isRefused)
        #expect(state.attempts == 2)
        #expect(state.waiterCount == 3)
    }

    @Test("A refused request waits for another connection, ahead of the other waiting requests")
    func avoids() {
        var (state, connection) = Self.connected(places: 1)
        _ = state.admit(Waiter(), of: 0)
        Self.queue(1, in: &state)
        let refused = Waiter()
        state.release(connection, of: 0)
        _ = state.next()
        let waits = state.admit(refused, of: 0, avoiding: connection).waits
        #expect(waits)
        Self.expectAttempt(&state, made: true)
        state.release(connection, of: 0)
        Self.expectNext(&state, exists: false)
        let other = Connection()
        state.connected(other, maxConnections: 4)
        let served = state.next()
        #expect(served?.0 === refused)
        #expect(served?.1 === other)
    }

    @Test("A refused request reuses its connection if no other is allowed")
    func avoidsInVain() {
        var (state, connection) = Self.connected(places: 1, connections: 1)
        let used = state.admit(Waiter(), of: 0, avoiding: connection).started
        #expect(used === connection)
    }

    @Test("A failed attempt fails no request with a connection open, one during other attempts, else all")
    func failedAttempt() {
        var (state, connection) = Self.connected(places: 1)
        _ = state.admit(Waiter(), of: 0)
        Self.queue(3, in: &state)
        for _ in 0..<3 { Self.expectAttempt(&state, made: true) }
        var failed = state.attemptFailed()
        #expect(failed.isEmpty)
        state.retire(connection, carrying: [0])
        failed = state.attemptFailed()
        #expect(failed.count == 1)
        failed = state.attemptFailed()
        #expect(failed.count == 2)
        #expect(state.attempts == 0)
    }

    @Test("A retired connection gets no requests and is no longer counted")
    func retires() {
        var (state, connection) = Self.connected(places: 5)
        _ = state.admit(Waiter(), of: 0)
        state.retire(connection, carrying: [0])
        state.release(connection, of: 0)
        #expect(state.connectionCount == 0)
        Self.queue(1, in: &state)
        Self.expectNext(&state, exists: false)
    }

    // MARK: Tenants

    @Test("One tenant leaves a sixteenth of the streams free for others")
    func streamReserve() {
        var state = State(maxConnections: 2, maxWaiters: 100, expectedPlaces: nil)
        let connections = [Connection(32), Connection(32)]
        state.open(connections, maxConnections: 2)
        var started = 0
        for _ in 1...64 {
            if state.admit(Waiter(1), of: 1).started != nil { started += 1 }
        }
        #expect(started == 60)
        let isServed = state.admit(Waiter(2), of: 2).started != nil
        #expect(isServed)
        // The requests of a lost connection no longer count.
        let (full, other) =
            connections[0].places.taken == 32 ? (connections[0], connections[1]) : (connections[1], connections[0])
        state.retire(full, carrying: Array(repeating: 1, count: 32))
        var served = 0
        while state.next() != nil { served += 1 }
        #expect(served == 3)
        for _ in 0..<28 { state.release(other, of: 1) }
        while state.next() != nil { served += 1 }
        #expect(served == 4)
    }

    @Test("Two tenants with unlimited demand get nearly half of the connections each")
    func halves() {
        var state = State(maxConnections: 64, maxWaiters: 1000, expectedPlaces: 1)
        var taken: [Int: [Connection]] = [1: [], 2: []]
        func serve() {
            repeat {
                while let (waiter, connection) = state.next() { taken[waiter.tenant]?.append(connection) }
                guard state.shouldConnect() else { return }
                state.connected(Connection(), maxConnections: 64)
            } while true
        }
        for tenant in [1, 2] {
            for _ in 0..<400 { _ = state.admit(Waiter(tenant), of: tenant) }
            serve()
        }
        #expect(taken[1]?.count == 60)
        for _ in 0..<200 {
            // Calls take equally long, so the tenant with more of them in flight ends one first.
            let tenant = (taken[1]?.count ?? 0) >= (taken[2]?.count ?? 0) ? 1 : 2
            guard let connection = taken[tenant]?.popLast() else { continue }
            state.release(connection, of: tenant)
            serve()
        }
        #expect((28...34).contains(taken[1]?.count ?? 0))
        #expect((28...34).contains(taken[2]?.count ?? 0))
    }

    @Test("Random traffic exceeds no limit and leaves no request waiting", arguments: 1...40)
    func randomTraffic(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let limit = Int.random(in: 1...40, using: &random)
        let places = seed % 2 == 0 ? 1 : Int.random(in: 1...10, using: &random)
        var state = State(maxConnections: limit, maxWaiters: 50, expectedPlaces: seed % 2 == 0 ? 1 : nil)
        var running: [(tenant: Int, connection: Connection)] = []
        var waiting = 0
        func serve() {
            while let (waiter, connection) = state.next() {
                waiting -= 1
                running.append((waiter.tenant, connection))
            }
        }
        func connect() {
            while state.shouldConnect() {
                if Int.random(in: 0..<8, using: &random) == 0 {
                    waiting -= state.attemptFailed().count
                } else {
                    state.connected(Connection(places), maxConnections: limit)
                }
                serve()
            }
        }
        for step in 0..<4_000 {
            if step < 3_000, Bool.random(using: &random) || running.isEmpty {
                let tenant = Int.random(in: 0...4, using: &random)
                switch state.admit(Waiter(tenant), of: tenant) {
                case .start(let connection): running.append((tenant, connection))
                case .wait(let displaced): waiting += displaced == nil ? 1 : 0
                case .exhausted: break
                }
                connect()
            } else if !running.isEmpty {
                let (tenant, connection) = running.remove(at: Int.random(in: running.indices, using: &random))
                if Int.random(in: 0..<10, using: &random) > 0 {
                    state.release(connection, of: tenant)
                } else {
                    let carried = running.filter { $0.connection === connection }.map(\.tenant)
                    running.removeAll { $0.connection === connection }
                    state.retire(connection, carrying: carried + [tenant])
                }
                serve()
                connect()
            }
            #expect(running.count <= limit * places)
            #expect(state.connectionCount <= limit)
            #expect(state.waiterCount == waiting)
        }
        #expect(running.isEmpty)
        #expect(waiting == 0)
    }
}

extension HTTPPoolState where Waiter == HTTPPoolStateTests.Waiter {
    /// Adds the first connections.
    fileprivate mutating func open(_ connections: [Connection], maxConnections: Int) {
        let waiter = Waiter()
        _ = self.admit(waiter, of: 0)
        for connection in connections {
            _ = self.shouldConnect()
            self.connected(connection, maxConnections: maxConnections)
        }
        self.remove(waiter, of: 0)
    }
}

extension HTTPPoolState.Admission {
    fileprivate var started: Connection? { if case .start(let connection) = self { connection } else { nil } }
    fileprivate var waits: Bool { if case .wait = self { true } else { false } }
    fileprivate var isExhausted: Bool { if case .exhausted = self { true } else { false } }
}
