import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import Testing

@testable import EventLoopHTTP

@Suite("HTTPServerLoop.ConnectionTable")
struct HTTPConnectionTableTests {
    private final class Connection {
        var idleSince: NIODeadline?

        init(idleSince seconds: Int64? = nil) {
            self.idleSince = seconds.map { .uptimeNanoseconds(0) + .seconds($0) }
        }
    }

    private typealias Table = HTTPServerLoop.ConnectionTable<Connection>

    @Test("The longest idle connection is found after additions and removals")
    func longestIdle() {
        var table = Table()
        let connections = (0..<100).map { Connection(idleSince: Int64(100 - $0)) }
        for connection in connections { table.add(connection) }
        for index in stride(from: 1, to: 100, by: 2) { table.remove(connections[index]) }
        // A second removal has no effect.
        table.remove(connections[1])
        #expect(table.connections.count == 50)
        for index in stride(from: 98, through: 0, by: -2) {
            let found = table.longestIdle(by: \.idleSince)
            #expect(found === connections[index])
            table.remove(connections[index])
        }
        #expect(table.connections.isEmpty)
        #expect(table.longestIdle(by: \.idleSince) == nil)
    }

    @Test("A busy connection is not found")
    func busy() {
        var table = Table()
        let connections = (0..<10).map { _ in Connection() }
        for connection in connections { table.add(connection) }
        #expect(table.longestIdle(by: \.idleSince) == nil)
        connections[7].idleSince = .distantPast
        #expect(table.longestIdle(by: \.idleSince) === connections[7])
        connections[7].idleSince = nil
        #expect(table.longestIdle(by: \.idleSince) == nil)
    }

    @Test("A search examines at most searchLength connections, and the next continues after them")
    func bounded() {
        var table = Table(searchLength: 4)
        let connections = (0..<10).map { _ in Connection() }
        for connection in connections { table.add(connection) }
        connections[9].idleSince = .uptimeNanoseconds(5)
        var looks = 0
        func search() -> Connection? {
            table.longestIdle { connection in
                looks += 1
                return connection.idleSince
            }
        }
        #expect(search() == nil)
        #expect(search() == nil)
        #expect(search() === connections[9])
        #expect(looks == 12)
        // The next search would have started at a connection that is now removed.
        for connection in connections[2...] { table.remove(connection) }
        connections[0].idleSince = .uptimeNanoseconds(5)
        #expect(search() === connections[0])
        #expect(looks == 14)
    }

    // MARK: On an event loop

    @Test("The longest idle connection is evicted once it has been idle for a second")
    func evicts() throws {
        let cuts = Mutex<[HTTPServerCloseReason]>([])
        let bench = ServerBench { $0.onClose = { reason in cuts.withLock { $0.append(reason) } } }
        let (first, second, fresh, begun) = (
            try bench.connect(), try bench.connect(), try bench.connect(), try bench.connect()
        )
        try first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        try begun.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        try begun.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n"))
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .milliseconds(500))
        try second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        bench.eventLoop.advanceTime(by: .milliseconds(499))
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .milliseconds(1))
        #expect(bench.loop.evict())
        #expect(!first.isActive && second.isActive)
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .milliseconds(500))
        // A request ends the idle time.
        try second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .seconds(1))
        #expect(bench.loop.evict())
        #expect(!second.isActive)
        // `fresh` has sent no request yet, `begun` a part of its second.
        #expect(!bench.loop.evict())
        #expect(fresh.isActive && begun.isActive)
        #expect(cuts.withLock { $0 } == [.evicted, .evicted])
        bench.loop.closeAll { #expect($0 == 0) }
        bench.eventLoop.run()
        #expect(!fresh.isActive && !begun.isActive)
    }
}

@Suite("HTTPServerLoop.Lag")
struct LoopLagTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private static func at(_ milliseconds: Int) -> NIODeadline {
        self.start + .milliseconds(Int64(milliseconds))
    }

    private var lag = HTTPServerLoop.Lag(longTurn: .milliseconds(1), window: .milliseconds(100))
    private var time = 0

    /// Runs consecutive turns of the loop, each after a pause.
    private mutating func turn(of milliseconds: Int, pause: Int = 0, times: Int = 1) {
        for _ in 0..<times {
            self.time += pause
            let isFirst = self.lag.beginTurn(at: Self.at(self.time))
            let isSecond = self.lag.beginTurn(at: Self.at(self.time))
            #expect(isFirst && !isSecond)
            self.time += milliseconds
            self.lag.endTurn(at: Self.at(self.time))
        }
    }

    /// Returns the lag reported some time into a turn.
    private mutating func told(after milliseconds: Int) -> TimeAmount {
        _ = self.lag.beginTurn(at: Self.at(self.time))
        self.time += milliseconds
        let told = self.lag.lag(at: Self.at(self.time))
        self.lag.endTurn(at: Self.at(self.time))
        return told
    }

    @Test("A single long turn is not overload")
    mutating func burst() {
        self.turn(of: 0, pause: 1, times: 150)
        #expect(self.told(after: 60) == .zero)
        self.turn(of: 0, pause: 1, times: 100)
        #expect(self.told(after: 5) == .zero)
    }

    @Test("A window full of long turns reports lag until a window of short turns")
    mutating func overload() {
        self.turn(of: 0, pause: 100)
        self.turn(of: 10, times: 9)
        #expect(!self.lag.isBehind)
        self.turn(of: 10)
        #expect(self.lag.isBehind)
        #expect(self.told(after: 3) == .milliseconds(3))
        #expect(self.told(after: 7) == .milliseconds(7))
        self.turn(of: 5, times: 18)
        #expect(self.told(after: 2) == .milliseconds(2))
        self.turn(of: 0, pause: 1, times: 100)
        #expect(self.told(after: 40) == .zero)
    }

    @Test("Short turns are not overload, even without pauses")
    mutating func shortTurns() {
        self.turn(of: 1, times: 500)
        #expect(!self.lag.isBehind)
    }

    @Test(
        "Long turns are overload above three quarters of the time",
        arguments: [(12, 8, false), (16, 4, true), (15, 5, false)]
    )
    mutating func share(long: Int, pause: Int, isBehind: Bool) {
        self.turn(of: 0, pause: 100)
        self.turn(of: long, pause: pause, times: 5)
        #expect(self.lag.isBehind == isBehind)
    }

    @Test("Overload ends after a rest")
    mutating func rest() {
        self.turn(of: 0, pause: 100)
        self.turn(of: 10, times: 10)
        #expect(self.lag.isBehind)
        self.time += 60_000
        self.turn(of: 2)
        #expect(!self.lag.isBehind)
        #expect(self.told(after: 50) == .zero)
    }

    @Test("Lag is zero outside a turn")
    mutating func outside() {
        self.turn(of: 0, pause: 100)
        self.turn(of: 10, times: 10)
        #expect(self.lag.lag(at: Self.at(self.time + 500)) == .zero)
        self.lag.endTurn(at: Self.at(self.time + 500))
        #expect(self.lag.isBehind)
    }
}

@Suite("HTTPServerLoop.ResponsePacer")
struct HTTPResponsePacerTests {
    private static let start = NIODeadline.uptimeNanoseconds(5_000_000_000)

    private static var pacer: HTTPServerLoop.ResponsePacer {
        HTTPServerLoop.ResponsePacer(
            interval: .milliseconds(10),
            burst: .milliseconds(50),
            maxDelay: .milliseconds(100)
        )
    }

    @Test("A burst leaves immediately, later responses are spaced, and the delay has a maximum")
    func burst() {
        var pacer = Self.pacer
        let delays = (0..<20).map { _ in pacer.delay(at: Self.start).nanoseconds / 1_000_000 }
        #expect(delays == [0, 0, 0, 0, 0, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100, 100, 100, 100])
    }

    @Test("Responses at the permitted rate are not delayed")
    func steady() {
        var pacer = Self.pacer
        for count in 0..<1_000 {
            #expect(pacer.delay(at: Self.start + .milliseconds(Int64(count) * 10)) == .zero)
        }
    }

    @Test("A pause restores one burst and no more")
    func pause() {
        var pacer = Self.pacer
        for _ in 0..<100 { _ = pacer.delay(at: Self.start) }
        let later = Self.start + .seconds(60)
        #expect((0..<8).map { _ in pacer.delay(at: later) }.count { $0 == .zero } == 6)
    }

    @Test("Responses faster than the rate leave in order at the interval")
    func rate() {
        var pacer = Self.pacer
        // One response every 9 ms at an interval of 10 ms: the maximum delay is never reached.
        var times: [Int64] = []
        for count in 0..<150 {
            let now = Self.start + .milliseconds(Int64(count) * 9)
            times.append((now + pacer.delay(at: now) - Self.start).nanoseconds / 1_000_000)
        }
        #expect(times == times.sorted())
        for (first, second) in zip(times.dropFirst(60), times.dropFirst(61)) { #expect(second - first == 10) }
    }
}

@Suite("computeOffLoop")
struct ComputeOffLoopTests {
    @Test("The closure runs off the event loop, and the caller resumes on it")
    func leaves() async {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let places = await Task(executorPreference: EventLoopTaskExecutor(eventLoop: loop)) {
            let before = loop.inEventLoop
            let meanwhile = await computeOffLoop { loop.inEventLoop }
            return [before, meanwhile, loop.inEventLoop]
        }
        .value
        #expect(places == [true, false, true])
    }
}
