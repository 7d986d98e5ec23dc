import HTTPTypes
import Logging
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import EventLoopHTTP

@Suite("HTTPConnectionTable")
struct HTTPConnectionTableTests {
    private final class Connection {
        var idleSince: NIODeadline?

        init(idleSince seconds: Int64? = nil) {
            self.idleSince = seconds.map { .uptimeNanoseconds(0) + .seconds($0) }
        }
    }

    private typealias Table = HTTPConnectionTable<Connection>

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

    private static func request(over channel: EmbeddedChannel) throws {
        try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
        channel.embeddedEventLoop.run()
    }

    @Test("A connection is given up for another once it has been idle for a second, the longest idle one first")
    func evicts() throws {
        let cuts = Mutex<[HTTPServerCloseReason]>([])
        let bench = ServerBench { $0.onClose = { reason in cuts.withLock { $0.append(reason) } } }
        let (first, second, fresh, begun) = (
            try bench.connect(), try bench.connect(), try bench.connect(), try bench.connect()
        )
        try Self.request(over: first)
        try Self.request(over: begun)
        try begun.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n"))
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .milliseconds(500))
        try Self.request(over: second)
        bench.eventLoop.advanceTime(by: .milliseconds(499))
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .milliseconds(1))
        #expect(bench.loop.evict())
        #expect(!first.isActive && second.isActive)
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .milliseconds(500))
        // A request is what it takes to stay.
        try Self.request(over: second)
        #expect(!bench.loop.evict())
        bench.eventLoop.advanceTime(by: .seconds(1))
        #expect(bench.loop.evict())
        #expect(!second.isActive)
        // One has not sent its first request yet, the other a part of its second.
        #expect(!bench.loop.evict())
        #expect(fresh.isActive && begun.isActive)
        #expect(cuts.withLock { $0 } == [.evicted, .evicted])
        bench.loop.closeAll(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        bench.eventLoop.run()
        #expect(!fresh.isActive && !begun.isActive)
    }
}
