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

    @Test("The connection that has idled longest is found, however often connections come and go")
    func longestIdle() {
        var table = Table()
        let connections = (0..<100).map { Connection(idleSince: Int64(100 - $0)) }
        for connection in connections { table.add(connection) }
        for index in stride(from: 1, to: 100, by: 2) { table.remove(connections[index]) }
        // Twice is once.
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

    @Test("What does not idle is never found")
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

    @Test("A search looks at so many connections, and the next goes on behind them")
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
        // The last one goes, and with it the place where the next search would have begun.
        for connection in connections[2...] { table.remove(connection) }
        connections[0].idleSince = .uptimeNanoseconds(5)
        #expect(search() === connections[0])
        #expect(looks == 14)
    }

    // MARK: On an event loop

    @Test("A connection is given up for another once it has been idle for a second, the longest idle one first")
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
        // A request is what it takes to stay.
        try second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .seconds(1))
        #expect(bench.loop.evict())
        #expect(!second.isActive)
        // One has not sent its first request yet, the other a part of its second.
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

    /// Turns of the loop, one behind the other, each with a pause before it.
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

    /// What is told some time into a turn.
    private mutating func told(after milliseconds: Int) -> TimeAmount {
        _ = self.lag.beginTurn(at: Self.at(self.time))
        self.time += milliseconds
        let told = self.lag.lag(at: Self.at(self.time))
        self.lag.endTurn(at: Self.at(self.time))
        return told
    }

    @Test("One long turn is no overload, however long")
    mutating func burst() {
        self.turn(of: 0, pause: 1, times: 150)
        #expect(self.told(after: 60) == .zero)
        self.turn(of: 0, pause: 1, times: 100)
        #expect(self.told(after: 5) == .zero)
    }

    @Test("Long turns one behind the other tell their lag once a window is full of them, until one is not")
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

    @Test("Short turns are no overload, even without a pause")
    mutating func shortTurns() {
        self.turn(of: 1, times: 500)
        #expect(!self.lag.isBehind)
    }

    @Test(
        "More than three quarters of the time is overload",
        arguments: [(12, 8, false), (16, 4, true), (15, 5, false)]
    )
    mutating func share(long: Int, pause: Int, isBehind: Bool) {
        self.turn(of: 0, pause: 100)
        self.turn(of: long, pause: pause, times: 5)
        #expect(self.lag.isBehind == isBehind)
    }

    @Test("After a rest nothing is left of an overload but its last window")
    mutating func rest() {
        self.turn(of: 0, pause: 100)
        self.turn(of: 10, times: 10)
        #expect(self.lag.isBehind)
        self.time += 60_000
        self.turn(of: 2)
        #expect(!self.lag.isBehind)
        #expect(self.told(after: 50) == .zero)
    }

    @Test("Outside a turn there is no lag")
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

    @Test("A burst goes out at once, what follows in its turn, and nobody waits longer than the longest wait")
    func burst() {
        var pacer = Self.pacer
        let delays = (0..<20).map { _ in pacer.delay(at: Self.start).nanoseconds / 1_000_000 }
        #expect(delays == [0, 0, 0, 0, 0, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100, 100, 100, 100])
    }

    @Test("Answers that come no faster than they may never wait")
    func steady() {
        var pacer = Self.pacer
        for count in 0..<1_000 {
            #expect(pacer.delay(at: Self.start + .milliseconds(Int64(count) * 10)) == .zero)
        }
    }

    @Test("A pause gives the burst back, and no more than that")
    func pause() {
        var pacer = Self.pacer
        for _ in 0..<100 { _ = pacer.delay(at: Self.start) }
        let later = Self.start + .seconds(60)
        #expect((0..<8).map { _ in pacer.delay(at: later) }.count { $0 == .zero } == 6)
    }

    @Test("Many at once leave no faster than the interval allows")
    func rate() {
        var pacer = Self.pacer
        // Twice as many as may be, for ten seconds; a wait of 100 ms is ten of them, so more are held back for longer
        // than the longest wait only by leaving early.
        var times: [Int64] = []
        for count in 0..<150 {
            let now = Self.start + .milliseconds(Int64(count) * 9)
            times.append((now + pacer.delay(at: now) - Self.start).nanoseconds / 1_000_000)
        }
        #expect(times == times.sorted())
        for (first, second) in zip(times.dropFirst(60), times.dropFirst(61)) { #expect(second - first == 10) }
    }
}

@Suite("Long computations")
struct ComputeOffLoopTests {
    @Test("They leave the event loop's thread, and their caller comes back to it")
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
