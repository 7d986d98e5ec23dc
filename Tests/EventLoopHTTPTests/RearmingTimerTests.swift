import NIOCore
import NIOEmbedded
import Testing

@testable import EventLoopHTTP

@Suite("RearmingTimer")
struct RearmingTimerTests {
    @Test("A deadline that moved later fires at its last value, once")
    func movesLater() {
        let (loop, timer, fired) = Self.start()
        timer.set(loop.now + .seconds(1))
        timer.set(loop.now + .seconds(3))
        loop.advanceTime(by: .milliseconds(2999))
        #expect(fired.count == 0)
        loop.advanceTime(by: .milliseconds(1))
        #expect(fired.count == 1)
        loop.advanceTime(by: .seconds(10))
        #expect(fired.count == 1)
    }

    @Test("A deadline that moved earlier fires at its last value")
    func movesEarlier() {
        let (loop, timer, fired) = Self.start()
        timer.set(loop.now + .seconds(75))
        timer.set(loop.now + .seconds(5))
        loop.advanceTime(by: .seconds(5))
        #expect(fired.count == 1)
    }

    @Test("A cleared or stopped timer does not fire")
    func clears() {
        let (loop, timer, fired) = Self.start()
        timer.set(loop.now + .seconds(1))
        timer.clear()
        loop.advanceTime(by: .seconds(2))
        #expect(fired.count == 0)
        timer.set(loop.now + .seconds(1))
        timer.stop()
        loop.advanceTime(by: .seconds(2))
        #expect(fired.count == 0)
    }

    private static func start() -> (EmbeddedEventLoop, RearmingTimer, EventCounter) {
        let loop = EmbeddedEventLoop()
        let timer = RearmingTimer(eventLoop: loop)
        let fired = EventCounter()
        timer.start { fired.increment() }
        return (loop, timer, fired)
    }
}
